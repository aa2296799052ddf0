// Asks one server by telegraf's plugin, and prints what it gathered as JSON.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/influxdata/telegraf/plugins/inputs/zookeeper"
	"github.com/influxdata/telegraf/testutil"
)

func main() {
	plugin := &zookeeper.Zookeeper{Servers: os.Args[1:]}
	var got testutil.Accumulator
	err := plugin.Init()
	if err == nil {
		err = got.GatherError(plugin.Gather)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{"tags": got.Metrics[0].Tags, "fields": got.Metrics[0].Fields})
}
