package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// successor connects to the server that runs now.
type successor struct {
	atomic.Pointer[embedded.Server]
}

func (s *successor) InProcessConn() (net.Conn, error) { return s.Load().Conn().InProcessConn() }

// A server of NATS that is started again with a smaller max_payload gets no record and no answer that was gathered for the larger one.
func TestServerThatTakesLessThanBefore(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		log := logrus.New()
		log.SetOutput(writer{t})
		var at successor
		begin := func(largest int, dir string) {
			t.Helper()
			server, err := embedded.Start(t.Context(), embedded.Options{DontListen: true, StoreDir: dir, MaxPayload: largest})
			if err != nil {
				t.Fatal(err)
			}
			at.Store(server)
		}
		dial := func(_ context.Context, name string) (*post.Conn, error) {
			return post.Dial(t.Context(), post.Options{InProcess: &at, Name: name, Logger: log})
		}
		dir := t.TempDir()
		begin(1<<20, dir)
		conn, err := dial(nil, "test")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := topology.Ensure(t.Context(), conn, topology.Options{Partitions: 1}); err != nil {
			t.Fatal(err)
		}
		held, err := claims.Open(conn, ns.BucketClaims(), claims.Options{Node: "a", Logger: log})
		if err != nil {
			t.Fatal(err)
		}
		b, err := broker.New(dial, broker.Options{Partitions: 1, Claims: held, Node: "a", Logger: log})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- b.Run(ctx) }()
		defer func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			conn.Close()
			at.Load().Shutdown()
		}()
		// ask asks until somebody answers, and gives up after half a minute.
		ask := func(verb, body string, answer any) {
			t.Helper()
			for range 10 {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				m, err := conn.Request(ctx, ns.API(verb), nil, []byte(body))
				cancel()
				if err != nil {
					time.Sleep(time.Second)
					continue
				}
				if err := json.Unmarshal(m.Data, answer); err != nil || m.Header.Get("Nats-Service-Error-Code") != "" {
					t.Fatalf("%s: got %.300q, %v", verb, m.Data, err)
				}
				return
			}
			t.Fatalf("%s: nobody answers", verb)
		}
		signal := func(n int) {
			t.Helper()
			for range n {
				if _, err := conn.PublishSync(t.Context(), ns.Signal("o", "s"), nil, []byte(`"`+strings.Repeat("x", 40<<10)+`"`)); err != nil {
					t.Fatal(err)
				}
			}
		}
		page := func(after int) (p schemas.HistoryResponse) {
			t.Helper()
			ask("history", fmt.Sprintf(`{"workflowId":"o","after":%d}`, after), &p)
			return p
		}
		ask("start", startO, new(schemas.StartResponse))
		signal(4)
		time.Sleep(time.Second)
		whole := len(page(0).Events)

		at.Load().Shutdown()
		begin(128<<10, dir)
		signal(4)
		time.Sleep(3 * time.Second)
		var events int
		for {
			p := page(events)
			if events += len(p.Events); !p.More {
				break
			}
		}
		if events != whole+4 {
			t.Errorf("got %d events, want the %d from before and 4 signals", events, whole)
		}
	})
}
