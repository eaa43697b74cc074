package exchange_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/dispatch"
	"github.com/droverhq/drover/broker/partition/env/envtest"
	"github.com/droverhq/drover/broker/partition/exchange"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// fakeHost is a partition that has a run in memory, and reads others from histories that the test
// has made up.
type fakeHost struct {
	t    *testing.T
	o    *envtest.Owner
	run  *actor.Run
	past func() (*runs.Run, error) // what LoadRun reads

	owed   []*actor.Message
	buried []string // reasons
	done   int      // messages and effects of which nothing is left to lose
}

// newHost returns a host and the exchange that it has made.
func newHost(t *testing.T, o *envtest.Owner) (*fakeHost, *exchange.Exchange) {
	t.Helper()
	h := &fakeHost{t: t, o: o}
	outside := sender{out: o.Outbox()}
	return h, exchange.New(h, o.Owner, dispatch.New(outside, o.Owner))
}

func (h *fakeHost) Get(string) *actor.Run                { return h.run }
func (h *fakeHost) WhenKept(_ *actor.Run, f, _ func())   { f() }
func (h *fakeHost) Owe(_ *actor.Run, e *actor.Message)   { h.owed = append(h.owed, e) }
func (h *fakeHost) Bury(_ *actor.Message, why, _ string) { h.buried = append(h.buried, why) }

func (h *fakeHost) LoadRun(context.Context, string, string) (*runs.Run, error) { return h.past() }

func (h *fakeHost) completion() *watermark.Completion {
	return watermark.New(func() { h.done++ })
}

// comes is a message of the inbox that has come to a workflow.
func (h *fakeHost) comes(wid string, event execution.Message) *actor.Message {
	return &actor.Message{
		WorkflowID: wid, Event: event, At: h.o.Env.Now(), Completion: h.completion(),
		Position: schemas.Position{Sequence: 7},
	}
}

// sender is a partition that may send.
type sender struct {
	dispatch.Host
	out *natsconn.Outbox
}

func (s sender) CanWrite() bool            { return true }
func (s sender) Outside() *natsconn.Outbox { return s.out }

// wantSent tells whether the inbox has these messages, and no others: to whom, of which kind, and
// what they say.
func (h *fakeHost) wantSent(when string, want ...string) {
	h.t.Helper()
	var got []string
	for _, m := range h.o.Stored(h.o.Env.NS.StreamIn(0)) {
		_, wid, kind, _, err := subject.ParseIn(m.Subject)
		if err != nil {
			h.t.Fatal(err)
		}
		got = append(got, wid+" "+kind+": "+h.says(kind, m.Data))
	}
	if !slices.Equal(got, want) {
		h.t.Errorf("%s: sent %q, want %q", when, got, want)
	}
}

// says is what a message says, in short.
func (h *fakeHost) says(kind string, body []byte) string {
	var err error
	decode := func(v any) { err = schemas.Unmarshal(body, v) }
	says := ""
	switch kind {
	case actor.KindStart:
		var q schemas.StartRequest
		decode(&q)
		says = fmt.Sprint(q.Run, " for ", q.Origin.Parent.Run, " ", q.Origin.ParentScheduledEventID)
		if q.Origin.Probe {
			says += ", a probe"
		}
	case actor.KindChild:
		var r schemas.ChildReport
		decode(&r)
		says = fmt.Sprint(r.Child.Run, " of ", r.ParentRun, " ", r.ScheduledEventID, " ", r.Status,
			" ", string(r.Result), r.Reason, r.Cause)
		if r.Final {
			says += ", for good"
		}
	case actor.KindSignal:
		var s schemas.ExternalSignal
		decode(&s)
		says = fmt.Sprint(s.Name, " of ", s.Source.Run, " ", s.ScheduledEventID)
	case actor.KindExternal:
		var a schemas.ExternalAnswer
		decode(&a)
		says = fmt.Sprint("to ", a.SourceRun, " ", a.ScheduledEventID, " ", a.Cause)
	default:
		var q schemas.ExecutionRequest
		decode(&q)
		says = fmt.Sprint(q.Run, " by ", q.Origin.Execution.Run, " ", q.Origin.ScheduledEventID)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return says
}

// parent is the open run of a workflow that has asked for a child, for a signal to another workflow
// and for the end of a third.
func parent() *execution.State {
	return &execution.State{
		WorkflowID: "p", Run: "p-1", Status: schemas.StatusOpen, Start: &schemas.WorkflowStarted{},
		Children: map[int64]*execution.ChildRun{5: {
			ScheduledID: 5, Scheduled: &schemas.ChildScheduled{WorkflowID: "c", Run: "c-1"},
		}},
		Externals: map[int64]*execution.ExternalAction{
			6: {ScheduledID: 6, Signal: &schemas.SignalExternalScheduled{
				WorkflowID: "s", SignalName: "go",
			}},
			7: {ScheduledID: 7, Cancel: &schemas.CancelExternalScheduled{
				WorkflowID: "e", Run: "e-1",
			}},
		},
	}
}

// terminated is a parent that was ended by force, with a policy for its children.
func terminated(policy schemas.ChildPolicy) *execution.State {
	s := parent()
	s.Status = schemas.StatusTerminated
	s.Close = &schemas.Event{ID: 8, Attributes: &schemas.WorkflowTerminated{ChildPolicy: policy}}
	return s
}

// child is the run that event 5 of the parent has asked for; closed by what it is given, or open.
func child(status schemas.Status, end schemas.Attributes) *execution.State {
	s := &execution.State{
		WorkflowID: "c", Run: "c-1", Status: status, Start: &schemas.WorkflowStarted{
			ParentWorkflowExecution: &schemas.Execution{WorkflowID: "p", Run: "p-1"},
			ParentScheduledEventID:  5,
		},
	}
	if end != nil {
		s.Close = &schemas.Event{ID: 9, Attributes: end}
	}
	return s
}

// report is what the parent hears of its child c-1.
func report(status schemas.Status, cause schemas.Cause) *schemas.ChildReport {
	return &schemas.ChildReport{
		V: schemas.Version, ParentRun: "p-1", ScheduledEventID: 5, Status: status, Cause: cause,
		Child: schemas.Execution{WorkflowID: "c", Run: "c-1"},
	}
}

// start is the start of the child, as its inbox has it.
func start() *schemas.StartRequest {
	s := parent()
	return s.ChildStart(s.Children[5])
}
