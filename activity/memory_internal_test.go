package activity

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// What others can invent as much of as they like is not kept without a bound: types of tasks, and inboxes of those who ask.
func TestMemoryOfUnregisteredIsBounded(t *testing.T) {
	w := New(nil, nil)
	s := &term{Worker: w}
	for n := range 3 * max(maxStrange, mostAnswers) {
		if !w.firstSight(fmt.Sprint("type", n)) {
			t.Fatalf("type %d was seen before", n)
		}
		inbox := fmt.Sprintf("_INBOX.%d.", n)
		_ = s.respond(natsconn.Msg{Reply: inbox + "1"}, nil) // without a connection it fails, after the note
		if len(w.strange) > maxStrange || len(s.answers) > mostAnswers {
			t.Fatalf("after %d of each, %d types are kept and %d inboxes, want at most %d and %d", n+1, len(w.strange), len(s.answers), maxStrange, mostAnswers)
		}
		if !s.silenced(&natsconn.RefusedError{Subject: inbox + "1"}) {
			t.Fatalf("that inbox %d was answered is not known", n)
		}
	}
	if w.firstSight("type0") {
		t.Error("a type that is known is seen for the first time")
	}
}

// A question leaves nothing after, whether it was answered or given up. A task whose question was given up is for others.
func TestNothingStaysAsked(t *testing.T) {
	for _, answered := range []bool{true, false} {
		t.Run(fmt.Sprintf("answered=%v", answered), func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				s, err := newTerm(New(embeddedtest.Connect(t, embeddedtest.Serve(t, embedded.Options{DontListen: true})), nil))
				if err != nil {
					t.Fatal(err)
				}
				defer s.close()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				d := &delivery{term: s, list: "main", nonce: "n1", task: &schemas.ActivityTask{Report: s.ns.ActOutcome(0, "w", "main")}}
				permitted := make(chan bool, 1)
				go func() { permitted <- s.permission(ctx, d, false) }()
				time.Sleep(time.Second)
				if answered {
					s.permitted(natsconn.Msg{Data: []byte(`{"nonce":"n1","go":true}`)})
				} else {
					cancel()
				}
				if got := <-permitted; got != answered {
					t.Errorf("got permission %v, want %v", got, answered)
				}
				if want := map[bool]int64{false: 1}[answered]; s.returned.Load() != want {
					t.Errorf("%d tasks were handed back, want %d", s.returned.Load(), want)
				}
				if len(s.asking) != 0 {
					t.Errorf("%d questions are kept", len(s.asking))
				}
			})
		})
	}
}
