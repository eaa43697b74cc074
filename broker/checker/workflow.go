package checker

import (
	"fmt"
	"slices"

	"github.com/droverhq/drover/schemas"
)

// Workflow checks the runs of one workflow id: each by its own rules, and that they follow one
// another. Feed it the records of the id in the order of the stream and call [Workflow.End] at the
// end. A predecessor that retention has removed is no violation.
type Workflow struct {
	workflowID string
	current    *History
	past       map[string]pastRun  // runs that another one followed
	orphan     *History            // the first run, if it continues one that was not there
	starts     map[string]string   // start request ids, with the run that each began
	received   map[string][]string // by chain: what workflows had sent to the runs before it
	unfound    []lostOrigin        // replays of runs that were not there
	witness    func(*History, schemas.Event)
	// steppedBack hears of a record that is of an earlier time than the one before it; may be nil.
	steppedBack func(to, from schemas.Timestamp)
}

// pastRun is what is kept of a run once another one followed it.
type pastRun struct {
	chain  string
	policy schemas.ChildPolicy
	original
}

// NewWorkflow returns a checker of all runs of a workflow id.
func NewWorkflow(workflowID string) *Workflow {
	return &Workflow{
		workflowID: workflowID, past: make(map[string]pastRun), starts: make(map[string]string),
		received: make(map[string][]string),
	}
}

// Record takes the next record of any run of the workflow id; see [History.Record].
func (w *Workflow) Record(r *schemas.Record, body []byte, at schemas.Timestamp) []Violation {
	if w.current != nil && r.Run == w.current.run {
		return w.current.Record(r, body, at)
	}
	if _, ended := w.past[r.Run]; ended {
		return []Violation{
			w.violation(RuleOneRun, r,
				"a record of run %s after the first one of run %s, which followed it",
				r.Run, w.current.run),
		}
	}
	before := w.current
	w.current = New(w.workflowID, r.Run)
	w.current.witness, w.current.steppedBack = w.witness, w.steppedBack
	var found []Violation
	if before != nil {
		w.past[before.run] = pastRun{
			chain: before.chain(), policy: before.policy, original: before.original(),
		}
		found = w.follow(before, r)
	}
	found = append(found, w.current.Record(r, body, at)...)
	if before == nil && w.current.predecessor != "" {
		w.orphan = w.current
	}
	return append(found, w.checkStart(before, r)...)
}

// follow checks the first record of a run against the run before it, and takes over what the new
// run must know.
func (w *Workflow) follow(before *History, r *schemas.Record) []Violation {
	var found []Violation
	s := before.records
	if !before.Closed() {
		found = append(before.End(),
			w.violation(RuleOneRun, r, "run %s begins while run %s is open", r.Run, before.run))
	}
	if r.Inbox.Before(s.inbox) || r.Signals.Before(s.signals) {
		found = append(found, w.violation(RuleInherit, r,
			"the run begins at inbox %d/%d and signals %d/%d; run %s ended at %d/%d and %d/%d",
			r.Inbox.Incarnation, r.Inbox.Sequence, r.Signals.Incarnation, r.Signals.Sequence,
			before.run, s.inbox.Incarnation, s.inbox.Sequence, s.signals.Incarnation,
			s.signals.Sequence))
	}
	w.current.records.fence = s.fence
	if before.successor == r.Run {
		like := before.unread
		w.current.copies.like = &like
		w.current.once = before.once // a child is asked for once by the whole chain
		w.current.signals.recent, w.current.requests.recent = before.signals.recent, before.requests.recent
	}
	return found
}

// checkStart checks how a run came about, once its first record is read.
func (w *Workflow) checkStart(before *History, r *schemas.Record) []Violation {
	h := w.current
	var found []Violation
	if before != nil {
		switch {
		case before.successor != "" && (r.Run != before.successor || h.predecessor != before.run):
			found = append(found, w.violation(RuleContinuation, r,
				"run %s continues as run %s, but run %s follows and names %q as the one before it",
				before.run, before.successor, r.Run, h.predecessor))
		case before.successor == "" && h.predecessor != "":
			found = append(found, w.violation(RuleContinuation, r,
				"the run says that it continues run %s; run %s stands before it and did not continue",
				h.predecessor, before.run))
		}
	}
	if (h.predecessor == "") != (h.link.first == "") {
		found = append(found, w.violation(RuleContinuation, r,
			"the run continues run %q of the chain that began with run %q; want both or none",
			h.predecessor, h.link.first))
	}
	if h.predecessor == "" && h.copies.want != 0 {
		found = append(found, w.violation(RuleContinuation, r,
			"the run begins with %d signals of the run before it, and continues none",
			h.copies.want))
	}
	if a := startOf(r); before != nil && before.successor == r.Run && a != nil {
		found = append(found, w.checkContinuation(before, r, a)...)
	}
	if a := startOf(r); a != nil {
		found = append(found, w.checkReplay(r, a)...)
		if a.ContinuedExecutionRun == "" && len(a.SignalIDs) > 0 {
			w.received[r.Run] = a.SignalIDs
		}
	}
	if h.startRequest != "" && h.predecessor == "" {
		if other, seen := w.starts[h.startRequest]; seen {
			found = append(found, w.violation(RuleOnce, r,
				"the start request %q began run %s already", h.startRequest, other))
		}
		w.starts[h.startRequest] = r.Run
	}
	return found
}

// End returns the rules that are broken if nothing follows.
func (w *Workflow) End() []Violation {
	if w.current == nil {
		return nil
	}
	found := w.current.End()
	if next := w.current.successor; next != "" {
		found = append(found, Violation{
			Rule: RuleContinuation, WorkflowID: w.workflowID, Run: w.current.run,
			EventID: w.current.last,
			Detail:  fmt.Sprintf("the run continues as run %s, which has no record", next),
		})
	}
	return found
}

// run tells what is known of a run: that there is one, and that it is closed.
func (w *Workflow) run(run string) (p pastRun, known, closed bool) {
	if w == nil || w.current == nil {
		return pastRun{}, false, false
	}
	if h := w.current; h.run == run {
		return pastRun{chain: h.chain(), policy: h.policy, original: h.original()}, true, h.Closed()
	}
	p, known = w.past[run]
	return p, known, known
}

// knew tells whether a chain began with the knowledge of what another workflow had sent. Of one
// whose beginning is gone nobody can tell.
func (w *Workflow) knew(chain string, q question) bool {
	_, known, _ := w.run(chain)
	return !known || slices.Contains(w.received[chain], externalID(&q.Execution, q.event))
}

// startOf is how the run of a first record began; nil if the record does not say.
func startOf(r *schemas.Record) *schemas.WorkflowStarted {
	if len(r.Events) == 0 {
		return nil
	}
	a, _ := r.Events[0].Attributes.(*schemas.WorkflowStarted)
	return a
}

func (w *Workflow) violation(rule string, r *schemas.Record, format string, args ...any) Violation {
	return Violation{
		Rule: rule, WorkflowID: w.workflowID, Run: r.Run, EventID: r.First,
		Detail: fmt.Sprintf(format, args...),
	}
}
