package large_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env/envtest"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/schemas"
)

// start is a start with a signal, as it came straight to the owner.
func (h *fakeHost) start(input, signal schemas.Payload) (*actor.Message, *schemas.StartRequest) {
	h.t.Helper()
	q := &schemas.StartRequest{
		V: schemas.Version, WorkflowID: "w", Run: "r", Type: "t", Input: input,
		Signal: &schemas.StartSignal{Name: "s", Input: signal},
	}
	body, err := schemas.Marshal(q)
	if err != nil {
		h.t.Fatal(err)
	}
	e := &actor.Message{
		WorkflowID: "w", Event: execution.Start{Request: q}, Body: body, Log: intake.None,
	}
	return e, q
}

// Of a start that came straight to the owner that is stored which is too large for a record: of the
// new run, or of the signal alone if a run is open. What came by a log the reader has stored.
func TestWhatOfAStartIsStored(t *testing.T) {
	for _, tc := range []struct {
		name          string
		input, signal int // in percent of the largest body
		log           int
		signalOnly    bool
		want          [2]bool
	}{
		{name: "small", input: 1, signal: 1, log: intake.None},
		{name: "a large input", input: 40, signal: 1, log: intake.None, want: [2]bool{true}},
		{name: "both", input: 40, signal: 40, log: intake.None, want: [2]bool{true, true}},
		{name: "for an open run", input: 40, signal: 1, log: intake.None, signalOnly: true},
		{
			name: "a large signal for an open run", input: 40, signal: 40, log: intake.None,
			signalOnly: true, want: [2]bool{1: true},
		},
		{name: "of a log", input: 40, signal: 40, log: intake.Inbox},
	} {
		t.Run(tc.name, func(t *testing.T) {
			envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
				h, l := newHost(t, o)
				e, q := h.start(h.text(tc.input), h.text(tc.signal))
				e.Log = tc.log
				all := l.OfStart(e, q, tc.signalOnly)
				got := [2]bool{
					slices.Contains(all, &q.Input), slices.Contains(all, &q.Signal.Input),
				}
				if got != tc.want {
					t.Errorf("the input and the signal are stored: %v, want %v", got, tc.want)
				}
			})
		})
	}
}

// A start is judged once what is too large of it is stored, and before what came after it; the
// workflow id waits meanwhile. After a refusal nothing is left of it in the store, and what belongs
// to others stays there.
func TestAStartIsStoredFirst(t *testing.T) { // ADR 0063
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		h, l := newHost(t, o)
		others, err := o.Env.Store.Put(t.Context(), "others", []byte("1"))
		if err != nil {
			t.Fatal(err)
		}
		content, signal := h.text(200), schemas.RefPayload(others)
		e, q := h.start(content, signal)
		later := &actor.Message{WorkflowID: "w"}
		r := &actor.Run{WorkflowID: "w", Mailbox: []*actor.Message{later}}
		o.Do(func() {
			l.StoreStart(r, e, q, l.OfStart(e, q, false))
			if r.IsSettled() || h.loaded > 0 {
				t.Error("the workflow id does not wait")
			}
		})
		if !r.IsSettled() || h.loaded != 1 || !slices.Equal(r.Mailbox, []*actor.Message{e, later}) {
			t.Fatalf("it goes on %d times, with %d messages", h.loaded, len(r.Mailbox))
		}
		h.wantMoved("the input", q.Input, content, true)
		if len(l.OfStart(e, q, false)) > 0 {
			t.Error("there is more of it to store")
		}
		ref, _ := q.Input.Ref()
		o.Do(func() { l.DropStart(e) })
		if !h.stands(ref.Object) {
			t.Fatal("the input of a start that has begun a run is gone")
		}
		e.Verdict.Refused = schemas.Errorf(schemas.CodeConflict, "a run is open")
		o.Do(func() { l.DropStart(e) })
		if h.stands(ref.Object) || !h.stands(others.Object) {
			t.Error("the input of a refused start is left, or what others have stored is gone")
		}
	})
}

// A start that cannot be stored begins nothing: it is refused, and its sender is told what is at
// fault and whether to try again.
func TestAStartThatCannotBeStored(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fails error
		want  schemas.Code
	}{
		{"the store is full", fmt.Errorf("put: %w", natsconn.ErrFull), schemas.CodeLimit},
		{"the store does not answer", errors.New("no leader"), schemas.CodeUnavailable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
				h, l := newHost(t, o)
				h.storeFails(func() error { return tc.fails })
				e, q := h.start(h.text(200), nil)
				later := &actor.Message{WorkflowID: "w"}
				r := &actor.Run{WorkflowID: "w", Mailbox: []*actor.Message{later}}
				o.Do(func() { l.StoreStart(r, e, q, l.OfStart(e, q, false)) })
				if len(h.verdicts) != 1 || h.verdicts[0].Refused == nil {
					t.Fatalf("got %+v, want a refusal", h.verdicts)
				}
				if got := h.verdicts[0].Refused; got.Code != tc.want || got.Field != "input" {
					t.Errorf("got %+v, want code %s", got, tc.want)
				}
				if !slices.Equal(r.Mailbox, []*actor.Message{later}) || h.loaded != 1 {
					t.Errorf("it goes on %d times, with %d messages", h.loaded, len(r.Mailbox))
				}
			})
		})
	}
}
