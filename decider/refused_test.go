package decider_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

func TestWorkerThatMayNotListenStopsAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name string
		sub  []string
		o    decider.Options
		want string // the refused subject; empty if the worker may do all it needs
	}{
		{"another type", []string{"_INBOX.>", ns.Decide("other"), ns.Decide("other") + ".*"}, decider.Options{}, ns.Decide("order")},
		{"no sticky subject", []string{"_INBOX.>", ns.Decide("order")}, decider.Options{}, ns.Decide("order") + "."},
		{"no sticky subject, and none wanted", []string{"_INBOX.>", ns.Decide("order")}, decider.Options{StickyCache: -1}, ""},
		{"all of the type", []string{"_INBOX.>", ns.Decide("order"), ns.Decide("order") + ".*"}, decider.Options{}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				srv, _ := embeddedtest.Start(t, false, embeddedtest.User{Name: "decider", Publish: []string{ns.Announce("order")}, Subscribe: tt.sub})
				conn := embeddedtest.As(t, srv, "decider")
				w := decider.New(conn, &tt.o)
				w.Register("order", decider.Func(func(context.Context, *decider.Task) ([]schemas.Decision, error) { return nil, nil }))
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				began := time.Now()
				err := w.Run(ctx)
				if tt.want == "" {
					if err != nil || ctx.Err() == nil {
						t.Fatalf("got %v, want it to run until it is stopped", err)
					}
					return
				}
				e, ok := errors.AsType[*natsconn.RefusedError](err)
				if !ok || !e.Subscribe || !strings.HasPrefix(e.Subject, tt.want) || !errors.Is(err, natsconn.ErrPermission) {
					t.Fatalf("got %v, want the refusal of %s", err, tt.want)
				}
				for _, want := range []string{`type "order"`, e.Subject, "allow the NATS user to subscribe"} {
					if !strings.Contains(err.Error(), want) {
						t.Fatalf("got %q, want it to hold %q", err, want)
					}
				}
				if took := time.Since(began); took > 0 {
					t.Fatalf("it took %v, want it at once", took)
				}
			})
		})
	}
}
