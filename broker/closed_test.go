package broker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
)

// The NATS server closes a connection for good over what it cannot read or does not take. A broker without one of its connections serves nobody, keeps
// its claims, and looks healthy: it ends with an error, so that its process does, and others take over.
func TestBrokerEndsWithItsConnections(t *testing.T) {
	for i, name := range []string{"commits", "reads", "api"} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				keep := f.dial(f)
				defer keep.Close()
				held, err := claims.Open(keep, ns.BucketClaims(), claims.Options{Node: "a", Logger: f.log})
				if err != nil {
					t.Fatal(err)
				}
				var conns []*natsconn.Conn
				b, err := broker.New(func(context.Context, string) (*natsconn.Conn, error) {
					conns = append(conns, f.dial(f))
					return conns[len(conns)-1], nil
				}, broker.Options{Partitions: 1, Claims: held, Node: "a", Logger: f.log})
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				ctx, cancel := context.WithCancel(t.Context())
				go func() { ended <- b.Run(ctx) }()
				f.decider("order", one(""))
				f.start(startO)
				conns[i].NATS().Close()
				select {
				case err := <-ended:
					if !errors.Is(err, natsconn.ErrClosed) {
						t.Errorf("got %v, want %v", err, natsconn.ErrClosed)
					}
				case <-time.After(time.Minute):
					t.Error("it goes on")
					cancel()
					<-ended
				}
				cancel()
			})
		})
	}
}
