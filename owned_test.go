package drover_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// A call that waits for an answer asks again, word for word, soon after a broker has said that it serves a partition: once for all
// that is said in a moment. One that asks later asks once.
func TestCallsAskAgainWhenAPartitionHasANewOwner(t *testing.T) { // P-5
	for verb, call := range map[string]func(context.Context, *drover.Client) error{
		"start": func(ctx context.Context, c *drover.Client) error {
			_, err := c.Start(ctx, "order", nil, &drover.StartOptions{ID: "o"})
			return err
		},
		"result": func(ctx context.Context, c *drover.Client) error { return c.Run("o", "r1").Result(ctx, nil) },
	} {
		t.Run(verb, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				c, s := newService(t, drover.Options{})
				answer := func(n int, _ map[string]any) any {
					switch {
					case n == 1: // dies with the request
						return nil
					case verb == "start":
						return schemas.StartResponse{WorkflowID: "o", Run: "r1", Started: true}
					}
					return schemas.ResultResponse{Run: "r1", Status: schemas.StatusCompleted}
				}
				on(s, verb, answer)
				began := time.Now()
				time.AfterFunc(time.Second, func() {
					for p := range 4 {
						s.owned(p)
						time.Sleep(5 * time.Millisecond)
					}
				})
				if err := call(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took < time.Second || took > 1100*time.Millisecond {
					t.Errorf("answered after %v, want it some 50 ms after the word of the new owner, which came after 1s", took)
				}
				asked := s.requests(verb)
				if len(asked) != 2 {
					t.Fatalf("asked %d times, want 2", len(asked))
				}
				if diff := cmp.Diff(asked[0], asked[1]); diff != "" {
					t.Errorf("asked for something else the second time: %s", diff)
				}
				s.owned(0)
				time.Sleep(time.Second)
				if err := call(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				if n := len(s.requests(verb)); n != 3 {
					t.Errorf("asked %d times, want the call after the word to ask once", n-2)
				}
			})
		})
	}
}

// An answer is lost with the connection, so a call asks again soon after a reconnect.
func TestCallsAskAgainAfterAReconnect(t *testing.T) { // P-5
	virtual.Run(t, func(t *testing.T) {
		c, s := newService(t, drover.Options{})
		on(s, "result", func(n int, _ map[string]any) any {
			if n == 1 { // what it answers is lost
				return nil
			}
			return schemas.ResultResponse{Run: "r1", Status: schemas.StatusCompleted}
		})
		time.AfterFunc(time.Second, func() {
			if err := c.NATS().ForceReconnect(); err != nil {
				t.Error(err)
			}
		})
		began := time.Now()
		if err := c.Run("o", "r1").Result(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < time.Second || took > 1500*time.Millisecond {
			t.Errorf("answered after %v, want it some 50 ms after the reconnect, which came after 1s", took)
		}
		asked := s.requests("result")
		if len(asked) != 2 {
			t.Fatalf("asked %d times, want 2", len(asked))
		}
		if diff := cmp.Diff(asked[0], asked[1]); diff != "" {
			t.Errorf("asked for something else the second time: %s", diff)
		}
	})
}

// A client that is closed hears nothing more on a connection that is not its own.
func TestClosedClientLeavesNoSubscription(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, s := newService(t, drover.Options{})
		on(s, "describe", func(int, map[string]any) any { return schemas.DescribeResponse{} })
		before := c.NATS().NumSubscriptions()
		if _, err := c.Run("o", "r1").Describe(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now := c.NATS().NumSubscriptions(); now != before+1 {
			t.Fatalf("%d subscriptions after a call, want %d", now, before+1)
		}
		c.Close()
		if now := c.NATS().NumSubscriptions(); now != before {
			t.Fatalf("%d subscriptions after Close, want %d", now, before)
		}
	})
}

// owned says what a broker says that has taken a partition over.
func (s *service) owned(p int) {
	s.t.Helper()
	if err := s.conn.Publish(subject.Namespace("default").Owned(p), nil, nil); err != nil {
		s.t.Error(err)
	}
}
