package large_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env/envtest"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/broker/partition/large"
	"github.com/droverhq/drover/schemas"
)

// signals is the log of signals.
var signals = &intake.Log{Number: intake.Signals}

// signal is a signal, as message 7 of its log.
func signal(input schemas.Payload) (natsconn.Stored, *actor.Opened) {
	m := natsconn.Stored{Seq: 7, Time: time.Unix(1, 2), Data: input}
	event := execution.Signal{Name: "s", Input: input}
	return m, &actor.Opened{Message: &actor.Message{WorkflowID: "w", Event: event}}
}

// What is too large of a message of a log stands in the store when the message is handed on, under
// a name that whoever reads it again finds.
func TestALargeMessageOfALog(t *testing.T) {
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		h, l := newHost(t, o)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var refs []schemas.Payload
		for range 2 {
			m, opened := signal(h.text(80))
			if !l.Spill(ctx, signals, m, opened) {
				t.Fatal("it was not stored")
			}
			got := opened.Event.(execution.Signal).Input
			h.wantMoved("the signal", got, h.text(80), true)
			ref, _ := got.Ref()
			if names := large.SpillNames(0, true, m); !slices.Contains(names, ref.Object) {
				t.Errorf("it is named %s, and the sweep knows %q", ref.Object, names)
			}
			refs = append(refs, got)
			o.Wait(time.Second) // it is read again later
		}
		if string(refs[0]) != string(refs[1]) {
			t.Errorf("read again it is %s, before it was %s", refs[1], refs[0])
		}
		m, opened := signal(h.text(1))
		if !l.Spill(ctx, signals, m, opened) {
			t.Fatal("it was not handed on")
		}
		h.wantMoved("a small one", opened.Event.(execution.Signal).Input, h.text(1), false)

		result, details := h.text(30), h.text(40)
		report := &schemas.Report{Result: result, Details: details}
		opened.Event = execution.Report{Report: report}
		m = natsconn.Stored{Seq: 8, Data: append(result, details...)}
		if !l.Spill(ctx, signals, m, opened) {
			t.Fatal("it was not stored")
		}
		h.wantMoved("the result", report.Result, h.text(30), true)
		h.wantMoved("the details", report.Details, details, true)
	})
}

// A log waits until what is too large of a message is stored. It does not wait for room where the
// message fits a record as it is, since what makes room is read from it.
func TestALogWaitsForTheStore(t *testing.T) {
	full := errors.Join(natsconn.ErrFull)
	for _, tc := range []struct {
		name    string
		fails   error
		percent int // of the largest body
		waits   bool
	}{
		{"the store is gone", errors.New("no leader"), 40, true},
		{"the store is full, and it fits", full, 40, false},
		{"the store is full, and it does not fit", full, 90, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
				h, l := newHost(t, o)
				began := time.Now()
				h.storeFails(func() error {
					if time.Since(began) < time.Minute {
						return tc.fails
					}
					return nil
				})
				soon, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				later, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				m, opened := signal(h.text(tc.percent))
				if done := l.Spill(soon, signals, m, opened); done == tc.waits {
					t.Errorf("it is handed on while the store fails: %v", done)
				}
				input := func() schemas.Payload { return opened.Event.(execution.Signal).Input }
				h.wantMoved("before", input(), h.text(tc.percent), false)
				if !tc.waits {
					return
				}
				if !l.Spill(later, signals, m, opened) || time.Since(began) < time.Minute {
					t.Errorf("it is handed on after %v", time.Since(began))
				}
				h.wantMoved("after", input(), h.text(tc.percent), true)
			})
		})
	}
}

// A signal or an outcome that names what is not in the store, or something else than it says, is
// marked: it must not get before a decider. What another workflow names its owner has looked at.
func TestAReferenceToNothing(t *testing.T) {
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		_, l := newHost(t, o)
		stored, err := o.Env.Store.Put(t.Context(), "o", []byte("1"))
		if err != nil {
			t.Fatal(err)
		}
		missing, other := *stored, *stored
		missing.Object, other.Size = "p", 2
		good, none := schemas.RefPayload(stored), schemas.RefPayload(&missing)
		wrong := schemas.RefPayload(&other)
		sent := func(input schemas.Payload) execution.Signal {
			return execution.Signal{Input: input}
		}
		told := func(result, details schemas.Payload) execution.Report {
			return execution.Report{Report: &schemas.Report{Result: result, Details: details}}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, tc := range []struct {
			name  string
			log   int
			event execution.Message
			bad   string // what is marked
		}{
			{"no reference", intake.Signals, sent(schemas.Payload("1")), ""},
			{"what is there", intake.Signals, sent(good), ""},
			{"what is not there", intake.Signals, sent(none), "the body"},
			{"what is something else", intake.Signals, sent(wrong), "the body"},
			{"of a workflow", intake.Inbox, sent(none), ""},
			{"an outcome", intake.Inbox, told(good, good), ""},
			{"a result", intake.Inbox, told(none, good), "result"},
			{"details", intake.Inbox, told(good, wrong), "details"},
		} {
			opened := &actor.Opened{Message: &actor.Message{WorkflowID: "w", Event: tc.event}}
			if !l.LookUp(ctx, &intake.Log{Number: tc.log}, opened) {
				t.Fatalf("%s: it was not looked up", tc.name)
			}
			bad := ""
			switch m := opened.Event.(type) {
			case execution.Signal:
				bad = m.Bad
			case execution.Report:
				bad = m.Bad
			}
			if (bad == "") != (tc.bad == "") || !strings.HasPrefix(bad, tc.bad) {
				t.Errorf("%s: marked %q, want %q", tc.name, bad, tc.bad)
			}
		}
	})
}
