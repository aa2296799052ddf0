// The Go client, driven by commands on stdin. `class Worker` in workers.py describes them.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

var (
	client *zk.Conn
	talk   sync.Mutex
	codes  = map[error]int{
		zk.ErrConnectionClosed: -4, zk.ErrNoServer: -4, zk.ErrNoNode: -101, zk.ErrBadVersion: -103,
		zk.ErrNoChildrenForEphemerals: -108, zk.ErrNodeExists: -110, zk.ErrNotEmpty: -111,
	}
	watched = map[string]bool{}
)

func say(format string, arguments ...any) {
	talk.Lock()
	defer talk.Unlock()
	fmt.Printf(format+"\n", arguments...)
}

// In this client each read has a watch channel of its own. Other clients hold one watch per path and kind, so this program does too.
func watch(key string, events <-chan zk.Event) {
	talk.Lock()
	defer talk.Unlock()
	if watched[key] {
		return
	}
	watched[key] = true
	go func() {
		event := <-events
		talk.Lock()
		delete(watched, key)
		talk.Unlock()
		if event.Type > 0 { // Session events are negative.
			say("event %d %s", event.Type, event.Path)
		}
	}()
}

// dialer dials with TLS if the variable TLS_CERTIFICATES names a folder of certificates.
func dialer() (zk.Dialer, error) {
	folder := os.Getenv("TLS_CERTIFICATES")
	if folder == "" {
		return net.DialTimeout, nil
	}
	roots, err := os.ReadFile(folder + "/trust.pem")
	if err != nil {
		return nil, err
	}
	own, err := tls.LoadX509KeyPair(folder+"/client.pem", folder+"/client.key")
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{own}}
	config.RootCAs.AppendCertsFromPEM(roots)
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, address, config)
	}, nil
}

func connect(address string, timeoutMs int) error {
	dial, err := dialer()
	if err != nil {
		return err
	}
	quiet := zk.WithLogger(log.New(io.Discard, "", 0))
	timeout := time.Duration(timeoutMs) * time.Millisecond
	addresses := strings.Split(address, ",")
	if len(addresses) == 1 {
		// With one address, the client fails the requests that wait while it reconnects, with ErrNoServer.
		addresses = append(addresses, address)
	}
	connection, events, err := zk.Connect(addresses, timeout, zk.WithDialer(dial), quiet)
	client = connection
	go func() {
		for event := range events {
			if event.State == zk.StateHasSession {
				say("state SyncConnected")
			}
		}
	}()
	return err
}

func number(word string) int32 {
	value, err := strconv.Atoi(word)
	if err != nil {
		panic(err)
	}
	return int32(value)
}

func answer(words []string) (string, error) {
	switch path := words[len(words)-1]; words[0] {
	case "connect":
		return "", connect(words[1], int(number(words[2])))
	case "session":
		return strconv.FormatInt(client.SessionID(), 16), nil
	case "create":
		return client.Create(words[2], []byte(words[3]), number(words[1]), zk.WorldACL(zk.PermAll))
	case "get":
		data, stat, events, err := client.GetW(path)
		if err != nil {
			return "", err
		}
		watch("data "+path, events)
		return fmt.Sprintf("%s %d %x", data, stat.Version, stat.EphemeralOwner), nil
	case "exists":
		there, _, events, err := client.ExistsW(path)
		if err == nil && there {
			watch("data "+path, events)
		} else if err == nil {
			watch("exists "+path, events)
			err = zk.ErrNoNode
		}
		return "", err
	case "set":
		stat, err := client.Set(words[1], []byte(words[2]), number(words[3]))
		if err != nil {
			return "", err
		}
		return strconv.Itoa(int(stat.Version)), nil
	case "children":
		names, _, events, err := client.ChildrenW(path)
		if err == nil {
			watch("children "+path, events)
		}
		sort.Strings(names)
		return strings.Join(names, ","), err
	case "delete":
		return "", client.Delete(words[1], number(words[2]))
	case "sync":
		_, err := client.Sync(path)
		return "", err
	case "multi":
		child := words[1] + "/m"
		_, err := client.Multi(&zk.CheckVersionRequest{Path: words[1], Version: number(words[2])},
			&zk.SetDataRequest{Path: words[1], Data: []byte("multi"), Version: -1},
			&zk.CreateRequest{Path: child, Acl: zk.WorldACL(zk.PermAll)}, &zk.DeleteRequest{Path: child, Version: -1})
		return "", err
	case "lock":
		return "", zk.NewLock(client, path, zk.WorldACL(zk.PermAll)).Lock()
	case "protected":
		return client.CreateProtectedEphemeralSequential(path+"/n-", nil, zk.WorldACL(zk.PermAll))
	case "close":
		client.Close()
		return "", nil
	}
	return "", errors.New("unknown " + words[0])
}

func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		text, err := answer(strings.Split(lines.Text(), " "))
		if code, known := codes[err]; known {
			say("error %d", code)
		} else if err != nil {
			say("error %v", err)
		} else {
			say("ok %s", text)
		}
	}
}
