package large_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env/envtest"
	"github.com/droverhq/drover/broker/partition/large"
	"github.com/droverhq/drover/schemas"
)

// judge has a reply judged. It tells whether the run had to wait, and sees to it that nothing
// happened to it meanwhile, and that it goes on.
func (h *fakeHost) judge(l *large.Large, q *schemas.DecisionReply) (waited bool) {
	h.t.Helper()
	r := &actor.Run{WorkflowID: "w", State: &execution.State{
		WorkflowID: "w", Run: "r", Status: schemas.StatusOpen, Start: &schemas.WorkflowStarted{},
	}}
	body, err := schemas.Marshal(q)
	if err != nil {
		h.t.Fatal(err)
	}
	h.o.Do(func() {
		l.JudgeReply(r, q, &actor.Message{WorkflowID: "w", Body: body}, len(body))
		waited = l.Busy()
		if waited != (len(h.steps) == 0) || waited == r.IsSettled() {
			h.t.Errorf("waits: %v, the run waits: %v; got %v", waited, !r.IsSettled(), h.steps)
		}
	})
	if l.Busy() || !r.IsSettled() || !h.sealed && waited != (h.loaded == 1) {
		h.t.Errorf("the run still waits, or does not go on: %d", h.loaded)
	}
	return waited
}

func schedule(input schemas.Payload) schemas.Decision {
	a := &schemas.ScheduleActivity{ActivityID: "a", ActivityType: "t", Input: input}
	return schemas.Decide(a)
}

// Of a reply that fits no record the largest payloads are stored, the context last, until the rest
// fits. Then it is applied, with references. One that fits is applied as it is.
func TestAReplyThatIsTooLarge(t *testing.T) {
	for _, tc := range []struct {
		name    string
		inputs  [2]int // of two activities, in percent of the largest body
		context int
		inJSON  bool // the inputs take more there
		moved   [3]bool
	}{
		{name: "it fits", inputs: [2]int{40, 40}, context: 10},
		{name: "the larger one goes", inputs: [2]int{40, 70}, moved: [3]bool{1: true}},
		{name: "both go", inputs: [2]int{200, 200}, moved: [3]bool{true, true}},
		{
			name: "the context stays if it may", inputs: [2]int{30, 20}, context: 60,
			moved: [3]bool{true},
		},
		{name: "there is only the context", context: 120, moved: [3]bool{2: true}},
		{
			name: "it fits, but not in JSON", inputs: [2]int{90, 1}, inJSON: true,
			moved: [3]bool{true},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
				h, l := newHost(t, o)
				content := h.text
				if tc.inJSON {
					content = h.bytes
				}
				first, second := content(tc.inputs[0]), content(tc.inputs[1])
				waited := h.judge(l, &schemas.DecisionReply{
					Context:   h.text(tc.context),
					Decisions: []schemas.Decision{schedule(first), schedule(second)},
				})
				if want := tc.moved != [3]bool{}; waited != want || len(h.steps) != 1 {
					t.Fatalf("it waited: %v, want %v; got %v", waited, want, h.steps)
				}
				m, ok := h.steps[0].(execution.Reply)
				if !ok {
					t.Fatalf("got %#v, want the reply", h.steps[0])
				}
				input := func(i int) schemas.Payload {
					return m.Reply.Decisions[i].Attributes.(*schemas.ScheduleActivity).Input
				}
				h.wantMoved("the first input", input(0), first, tc.moved[0])
				h.wantMoved("the second input", input(1), second, tc.moved[1])
				h.wantMoved("the context", m.Reply.Context, h.text(tc.context), tc.moved[2])
			})
		})
	}
}

// A reply that cannot be made to fit is refused, and its sender is told what is too large: no
// record that is too large is ever written.
func TestAReplyThatCannotBeStored(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fails error
		reply func(h *fakeHost) *schemas.DecisionReply
		want  []string
	}{
		{"a state value stays where it is", nil, func(h *fakeHost) *schemas.DecisionReply {
			set := &schemas.SetState{Key: "k", Value: h.text(120)}
			return &schemas.DecisionReply{Decisions: []schemas.Decision{schemas.Decide(set)}}
		}, []string{"do not fit one record"}},
		{"the store fails", errors.New("no room"), func(h *fakeHost) *schemas.DecisionReply {
			d := []schemas.Decision{schedule(h.text(1)), schedule(h.bytes(90))}
			return &schemas.DecisionReply{Decisions: d}
		}, []string{"decision 2, input: ", "no room"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
				h, l := newHost(t, o)
				if tc.fails != nil {
					h.storeFails(func() error { return tc.fails })
				}
				h.judge(l, tc.reply(h))
				if len(h.steps) != 1 {
					t.Fatalf("%d things happened to the run, want one", len(h.steps))
				}
				m, ok := h.steps[0].(execution.Refuse)
				if !ok || m.Cause != schemas.CauseDecisionTooLarge {
					t.Fatalf("got %#v, want a refusal", h.steps[0])
				}
				for _, want := range tc.want {
					if !strings.Contains(m.Reason, want) {
						t.Errorf("the reason is %q, want %q in it", m.Reason, want)
					}
				}
			})
		})
	}
}

// An owner that changes nothing any more drops a reply whose payloads were on their way: nobody has
// heard of the decision, and the next owner asks again.
func TestASealedOwnerAppliesNothing(t *testing.T) {
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		h, l := newHost(t, o)
		h.sealed = true
		q := &schemas.DecisionReply{Decisions: []schemas.Decision{schedule(h.text(200))}}
		if waited := h.judge(l, q); !waited || len(h.steps) > 0 {
			t.Errorf("it waited: %v, and then came %v", waited, h.steps)
		}
	})
}
