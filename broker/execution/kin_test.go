package execution

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/schemas"
)

// family is a namespace without streams: every run is a state, and what runs send to one another waits as letters, in order
// for each workflow id. It does with effects what an owner does, and every history is checked against all the others.
type family struct {
	fail  func(format string, args ...any)
	c     Config
	now   schemas.Timestamp
	runs  map[string]*State // by run id
	last  map[string]*State // by workflow id
	mail  map[string][]Message
	place uint64

	holdUp func() bool // whether a letter is late; nil means never
	late   []letter

	locks keys

	check *checker.Namespace
	told  map[string][]string // the events of each run in the compact notation
	all   map[string][]schemas.Event
}

// letter is a message to the workflow id.
type letter struct {
	to string
	Message
}

func newFamily(fail func(format string, args ...any)) *family {
	return &family{
		fail: fail, c: Config{}.Defaults(), now: schemas.At(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		locks: keys{holder: map[string]string{}},
		runs:  map[string]*State{}, last: map[string]*State{}, mail: map[string][]Message{}, check: checker.NewNamespace(), told: map[string][]string{},
		all: map[string][]schemas.Event{},
	}
}

// step lets a message happen to a run, writes its record and performs its effects.
func (f *family) step(s *State, m Message) {
	f.now += schemas.Timestamp(time.Millisecond)
	events, effects := s.Step(&f.c, m, f.now)
	if len(events) > 0 {
		f.place++
		at := schemas.Position{Incarnation: 1, Sequence: f.place}
		r := &schemas.Record{WorkflowID: s.WorkflowID, Run: s.Run, First: events[0].ID, Events: events, Inbox: at, Signals: at, Fence: 1}
		f.blame(f.check.Record(r, nil, f.now))
	}
	f.all[s.Run] = append(f.all[s.Run], events...)
	for _, e := range events {
		f.told[s.Run] = append(f.told[s.Run], strings.Join(append([]string{string(e.Type())}, otherWords(e)...), " "))
	}
	for _, e := range effects {
		f.perform(s, e)
	}
}

func (f *family) blame(found []checker.Violation) {
	for _, v := range found {
		f.fail("%s\n%s", v, f.histories())
	}
}

func (f *family) histories() string {
	var b strings.Builder
	for _, run := range slices.Sorted(maps.Keys(f.told)) {
		fmt.Fprintf(&b, "%s %s: %s\n", f.runs[run].WorkflowID, run, strings.Join(f.told[run], "; "))
	}
	return b.String()
}

func (f *family) send(to string, m Message) {
	if f.holdUp != nil && f.holdUp() {
		f.late = append(f.late, letter{to, m})
		return
	}
	f.mail[to] = append(f.mail[to], m)
}

// release lets the i-th late letter come in.
func (f *family) release(i int) {
	l := f.late[i]
	f.late = slices.Delete(f.late, i, i+1)
	f.mail[l.to] = append(f.mail[l.to], l.Message)
}

func (f *family) perform(s *State, e Effect) {
	switch e := e.(type) {
	case StartChild:
		f.send(s.Children[e.ScheduledID].Scheduled.WorkflowID, Start{Request: s.ChildStart(s.Children[e.ScheduledID])})
	case Request:
		_, to, body := s.RequestOf(s.Externals[e.ScheduledID])
		if x, ok := body.(*schemas.ExternalSignal); ok {
			f.send(to, Signal{Name: x.Name, Input: x.Input, External: x})
		} else {
			f.send(to, Cancel{Request: body.(*schemas.ExecutionRequest)})
		}
	case Answer:
		f.send(e.To.WorkflowID, External{Answer: &e.Answer})
	case EndChild:
		q := &schemas.ExecutionRequest{WorkflowID: e.Child.WorkflowID, Run: e.Child.Run, Origin: &schemas.RequestOrigin{
			Execution: &schemas.Execution{WorkflowID: s.WorkflowID, Run: s.Run}, Cause: schemas.CauseChildPolicyApplied, FirstRun: e.Child.Run,
		}}
		if e.Policy == schemas.ChildRequestCancel {
			f.send(e.Child.WorkflowID, Cancel{Request: q})
		} else {
			f.send(e.Child.WorkflowID, Terminate{Request: q})
		}
	case LeaveLock:
		f.locks.leave(s, e)
	case Closed:
		f.report(s)
		if q := s.Continuation(); q != nil && f.runs[q.Run] == nil {
			f.begin(q)
			for _, e := range s.Unread(f.all[s.Run]) {
				f.step(f.runs[q.Run], Copied{EventID: e.ID, Signal: e.Attributes.(*schemas.Signal)})
			}
		}
	}
}

// begin writes the first record of a run.
func (f *family) begin(q *schemas.StartRequest) *State {
	s, m := New(q.WorkflowID, q.Run), Start{Request: q}
	if before := f.last[q.WorkflowID]; before != nil {
		m.Received = before.ReceivedFromWorkflows()
	}
	f.runs[q.Run], f.last[q.WorkflowID] = s, s
	f.step(s, m)
	return s
}

// report tells the parent of a run where it stands.
func (f *family) report(s *State) {
	parent := s.Start.ParentWorkflowExecution
	if parent == nil {
		return
	}
	r := &schemas.ChildReport{
		ParentRun: parent.Run, ScheduledEventID: s.Start.ParentScheduledEventID, Status: schemas.StatusOpen,
		Child: schemas.Execution{WorkflowID: s.WorkflowID, Run: s.Run},
	}
	if s.Closed() && s.Status != schemas.StatusContinuedAsNew {
		r.Status = s.Status
		switch a := s.Close.Attributes.(type) {
		case *schemas.WorkflowSuccess:
			r.Result = a.Result
		case *schemas.WorkflowFailed:
			r.Reason, r.Details = a.Reason, a.Details
		case *schemas.WorkflowCanceled:
			r.Details = a.Details
		}
	}
	f.send(parent.WorkflowID, Child{Report: r})
}

// deliver hands over the oldest letter for a workflow id.
func (f *family) deliver(to string) {
	m := f.mail[to][0]
	if f.mail[to] = f.mail[to][1:]; len(f.mail[to]) == 0 {
		delete(f.mail, to)
	}
	s := f.last[to]
	if q, ok := m.(Start); ok {
		f.startChild(s, q.Request)
		return
	}
	if c, ok := m.(Child); ok && c.Report.Status == schemas.StatusOpen && s.Run != c.Report.ParentRun {
		s = f.runs[c.Report.ParentRun] // its policy may have missed the child
	}
	if s != nil {
		f.step(s, m)
		return
	}
	switch m := m.(type) {
	case Signal:
		f.unknown(to, m.External.Source, m.External.ScheduledEventID)
	case Cancel:
		if o := m.Request.Origin; o.ScheduledEventID != 0 {
			f.unknown(to, *o.Execution, o.ScheduledEventID)
		}
	}
}

func (f *family) startChild(s *State, q *schemas.StartRequest) {
	switch known := f.runs[q.Run]; {
	case known != nil: // a repeat is answered from the child's history (P-5)
		f.report(known)
	case s != nil && !s.Closed():
		f.send(q.Origin.Parent.WorkflowID, Child{Report: &schemas.ChildReport{
			ParentRun: q.Origin.Parent.Run, ScheduledEventID: q.Origin.ParentScheduledEventID, Cause: schemas.CauseWorkflowRunning,
		}})
	default:
		f.report(f.begin(q))
	}
}

func (f *family) unknown(to string, source schemas.Execution, event int64) {
	f.send(source.WorkflowID, External{Answer: &schemas.ExternalAnswer{
		SourceRun: source.Run, ScheduledEventID: event, Target: schemas.Execution{WorkflowID: to}, Cause: schemas.CauseUnknownExecution,
	}})
}

// settle delivers all letters, and those that come of them.
func (f *family) settle() {
	f.holdUp = nil
	for len(f.late) > 0 {
		f.release(0)
	}
	for range 10_000 {
		to := slices.Sorted(maps.Keys(f.mail))
		if len(to) == 0 {
			return
		}
		f.deliver(to[0])
	}
	f.fail("the letters come to no end: %v", f.mail)
}

// again does all open effects of a run once more, as a new owner does.
func (f *family) again(s *State) {
	for _, e := range s.OpenEffects(f.now) {
		f.perform(s, e)
	}
}

// over checks that everything that was asked for has been carried out and reported.
func (f *family) over() {
	f.settle()
	f.blame(f.check.End(checker.EndOptions{Quiet: true}))
}

// decide lets the decider of a workflow's latest run take the task, if there is one, and answer.
func (f *family) decide(id string, decisions ...schemas.DecisionAttributes) {
	f.decideAmid(id, nil, decisions...)
}

// decideAmid is decide while something comes in.
func (f *family) decideAmid(id string, came []Message, decisions ...schemas.DecisionAttributes) {
	reply := &schemas.DecisionReply{}
	for _, d := range decisions {
		reply.Decisions = append(reply.Decisions, schemas.Decide(d))
	}
	f.step(f.last[id], Taken{})
	for _, m := range came {
		f.step(f.last[id], m)
	}
	f.step(f.last[id], Reply{Reply: reply})
}
