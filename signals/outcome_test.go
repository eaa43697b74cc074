package signals_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/signals"
)

// both are the two ways to publish a signal with a body.
var both = map[string]func(context.Context, *natsconn.Conn, []byte) (uint64, error){
	"plainly": func(ctx context.Context, conn *natsconn.Conn, body []byte) (uint64, error) {
		return signals.Publish(ctx, conn, "default", "w", "go", body)
	},
	"once": func(ctx context.Context, conn *natsconn.Conn, body []byte) (uint64, error) {
		return signals.PublishOnce(ctx, conn, "default", "w", "go", "r", body)
	},
}

// The input becomes part of a record, whose envelope has 64 KiB. One that leaves it just that is taken, and a byte more is not.
func TestPublishUpToItsLimit(t *testing.T) {
	conn := embeddedtest.Dial(t)
	ensure(t, conn)
	limit := int(conn.MaxPayload()) - 64<<10
	if _, err := signals.Publish(t.Context(), conn, "default", "w", "go", make([]byte, limit)); err != nil {
		t.Fatalf("got %v for %d bytes, want them taken", err, limit)
	}
	if _, err := signals.Publish(t.Context(), conn, "default", "w", "go", make([]byte, limit+1)); !errors.Is(err, natsconn.ErrTooLarge) {
		t.Fatalf("got %v for %d bytes, want ErrTooLarge", err, limit+1)
	}
}

// Nothing is stored of a signal that the server refused, so nobody need ask whether it was.
func TestARefusalIsNoUnknownOutcome(t *testing.T) {
	for name, publish := range both {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T) {
				srv, _ := embeddedtest.Start(t, false, embeddedtest.User{Name: "narrow", Subscribe: []string{"_INBOX.>"}})
				ensure(t, embeddedtest.As(t, srv, embeddedtest.Root))
				began := time.Now()
				_, err := publish(t.Context(), embeddedtest.As(t, srv, "narrow"), nil)
				if !errors.Is(err, natsconn.ErrPermission) || errors.Is(err, signals.ErrUnknown) || time.Since(began) > time.Second {
					t.Fatalf("got %v after %v, want ErrPermission at once, and no ErrUnknown", err, time.Since(began))
				}
			})
		})
	}
}

// Whoever gives up while the answer is on its way cannot know whether the signal is stored, whatever has ended ctx.
func TestASignalThatIsGivenUpIsUnknown(t *testing.T) {
	for name, publish := range both {
		for how, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
			"canceled": func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			},
			"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Second)
			},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				bubble(t, func(t *testing.T, conn *natsconn.Conn) {
					if _, err := conn.Subscribe(ns.AllSignals(), "", func(natsconn.Msg) {}); err != nil { // it swallows them
						t.Fatal(err)
					}
					ctx, cancel := end(t.Context())
					defer cancel()
					began := time.Now()
					_, err := publish(ctx, conn, nil)
					if took := time.Since(began); !errors.Is(err, signals.ErrUnknown) || took > 2*time.Second {
						t.Fatalf("got %v after %v, want ErrUnknown soon after 1 s", err, took)
					}
				})
			})
		}
	}
}

// A loop that is left early takes the reading of the letters with it, though the ctx that it was given goes on.
func TestALoopLeftEarlyReadsNoMore(t *testing.T) {
	bubble(t, func(t *testing.T, conn *natsconn.Conn) { // which fails if anything is left at its end
		ensure(t, conn)
		for i := range 3 {
			bury(t, conn, "invalid", uint64(i+1))
		}
		for _, err := range signals.DeadLetters(context.WithoutCancel(t.Context()), conn, "default", signals.DeadOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	})
}
