package topology_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
)

// fakeServer speaks just enough of the NATS protocol to be connected to. It answers each request with reply, or as a
// server on which nobody listens when reply is empty. It returns its URL.
func fakeServer(t *testing.T, info, reply string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c, info, reply)
		}
	}()
	return "nats://" + l.Addr().String()
}

func serve(c net.Conn, info, reply string) {
	defer c.Close()
	fmt.Fprintf(c, "INFO %s\r\n", info)
	subs := map[string]string{} // subject without the wildcard at its end, to id
	for in := bufio.NewScanner(c); in.Scan(); {
		word := strings.Fields(in.Text())
		switch {
		case len(word) == 0:
		case word[0] == "PING":
			fmt.Fprint(c, "PONG\r\n")
		case word[0] == "SUB":
			subs[strings.TrimRight(word[1], "*>")] = word[len(word)-1]
		case strings.HasSuffix(word[0], "PUB") && strings.HasPrefix(word[1], "$JS.API"):
			inbox, sid := word[2], ""
			for prefix, id := range subs {
				if strings.HasPrefix(inbox, prefix) {
					sid = id
				}
			}
			if reply != "" {
				fmt.Fprintf(c, "MSG %s %s %d\r\n%s\r\n", inbox, sid, len(reply), reply)
			} else {
				fmt.Fprintf(c, "HMSG %s %s 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", inbox, sid)
			}
		}
	}
}

func TestServersThatWillNotDo(t *testing.T) {
	const base = `{"server_id":"F","version":%q,"proto":1,"headers":true,"max_payload":1048576,"jetstream":%v}`
	account := func(level int) string {
		return fmt.Sprintf(`{"type":"io.nats.jetstream.api.v1.account_info_response","memory":0,"api":{"level":%d}}`, level)
	}
	for _, tc := range []struct {
		name, info, reply string
		want              error
		says              string
	}{
		{"2.10", fmt.Sprintf(base, "2.10.29", true), account(0), topology.ErrServerTooOld, "it is 2.10.29: upgrade it to 2.11"},
		{"1.4", fmt.Sprintf(base, "v1.4.0", true), "", topology.ErrServerTooOld, "v1.4.0"},
		{"one that stands still", fmt.Sprintf(base, "2.12.1", true), account(2), topology.ErrServerTooOld, "it is 2.12.1, whose streams come to stand still where they are read and written at the same time: upgrade it to 2.12.2"},
		{"an old one in the cluster", fmt.Sprintf(base, "2.14.0-beta.1", true), account(0), topology.ErrServerTooOld, "upgrade all of them"},
		{"no JetStream", fmt.Sprintf(base, "2.11.0", false), "", topology.ErrNoJetStream, "if it is a leaf node"},
		{
			"not for the account", fmt.Sprintf(base, "2.11.0", true),
			`{"type":"io.nats.jetstream.api.v1.account_info_response","error":{"code":503,"err_code":10039,"description":"JetStream not enabled for account"}}`,
			topology.ErrNoJetStream, "for this account",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			conn := connect(t, fakeServer(t, tc.info, tc.reply))
			_, err := topology.Ensure(t.Context(), conn, topology.Options{})
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("got %v, want %v saying %q", err, tc.want, tc.says)
			}
		})
	}
}

// A cluster without quorum answers, and says no more than that it is unavailable: what is to be done about it is added.
func TestClusterWithoutLeader(t *testing.T) {
	const info = `{"server_id":"F","version":"2.12.2","proto":1,"headers":true,"max_payload":1048576,"jetstream":true,"cluster":"trio"}`
	const reply = `{"type":"io.nats.jetstream.api.v1.account_info_response","error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}}`
	conn := connect(t, fakeServer(t, info, reply))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := topology.Ensure(ctx, conn, topology.Options{})
	if err == nil || errors.Is(err, topology.ErrRefused) || !topology.Transient(err) {
		t.Fatalf("got %v, want an error that may pass", err)
	}
	for _, want := range []string{"read the account", "10008", "fewer than half of its servers", "start the others"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func connect(t *testing.T, url string) *natsconn.Conn {
	t.Helper()
	conn, err := natsconn.Dial(t.Context(), natsconn.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}
