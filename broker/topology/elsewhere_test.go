package topology_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

// A namespace that is not here and is served, as by the servers of a hub whose leaf node this is, is not made a second time. One whose
// servers have not heard yet that it was deleted, or that has just been made, is.
func TestNamespaceIsServedElsewhere(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer *schemas.DeadResponse
		made   bool // by the one who answers, who was faster
		want   error
	}{
		{"by servers of another JetStream", &schemas.DeadResponse{V: schemas.Version}, false, topology.ErrConflict},
		{"by one that finds no streams", &schemas.DeadResponse{V: schemas.Version, Error: &schemas.Error{Code: schemas.CodeUnavailable}}, false, nil},
		{"here, since a moment ago", &schemas.DeadResponse{V: schemas.Version}, true, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			conn := dial(t, embedded.Options{})
			js := conn.JetStream()
			ensure(t, conn, topology.Options{})
			signals := config(t, conn, "drover-default-signals")
			for name := range js.StreamNames(t.Context()).Name() {
				if err := js.DeleteStream(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}
			sub, err := conn.Subscribe(subject.Namespace("default").API("dead"), "", func(m natsconn.Msg) {
				if tc.made {
					if _, err := js.CreateStream(t.Context(), signals); err != nil {
						t.Error(err)
					}
				}
				body, err := schemas.MarshalJSON(tc.answer)
				if err == nil {
					err = m.Respond(nil, body)
				}
				if err != nil {
					t.Error(err)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = sub.Close() }()
			_, err = topology.Ensure(t.Context(), conn, topology.Options{Partitions: 1, Memory: true})
			if !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			_, gone := js.Stream(t.Context(), "drover-default-signals")
			if err != nil && (!strings.Contains(err.Error(), "jetstream_domain") || !errors.Is(gone, jetstream.ErrStreamNotFound)) {
				t.Errorf("got %v, and the stream %v: want the way out, and nothing made", err, gone)
			}
		})
	}
}
