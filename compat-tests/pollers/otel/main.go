// Asks one server by OpenTelemetry's receiver, and prints the first metrics as JSON.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/zookeeperreceiver"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

func main() {
	factory := zookeeperreceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*zookeeperreceiver.Config)
	config.TCPAddr.Endpoint = os.Args[1]
	config.CollectionInterval, config.InitialDelay = time.Second, 0
	sink := new(consumertest.MetricsSink)
	receiver, err := factory.CreateMetricsReceiver(context.Background(), receivertest.NewNopCreateSettings(), config, sink)
	if err == nil {
		err = receiver.Start(context.Background(), componenttest.NewNopHost())
	}
	for start := time.Now(); err == nil && len(sink.AllMetrics()) == 0; time.Sleep(50 * time.Millisecond) {
		if time.Since(start) > 20*time.Second {
			err = fmt.Errorf("no metrics in 20 s")
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	text, _ := (&pmetric.JSONMarshaler{}).MarshalMetrics(sink.AllMetrics()[0])
	fmt.Println(string(text))
}
