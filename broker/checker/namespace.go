package checker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/droverhq/drover/schemas"
)

// Namespace checks all runs of a namespace: each workflow id as [Workflow] does, and that what
// workflows do to one another agrees on both sides: children, signals and cancel requests. Feed it
// the records of each workflow id in the order of its stream, different ids in any order, and call
// [Namespace.End] at the end. It is not safe for concurrent use.
//
// It keeps what is open between two workflows until both sides have said their last word, and about
// 1.5 KiB for each workflow id, and some 100 bytes for each time that a lock was got.
type Namespace struct {
	ids       map[string]*Workflow
	canceled  map[schemas.Execution]bool // chains, by their first run, that were asked to cancel
	children  map[question]*child
	externals map[question]*externalRequest
	lockTerms map[lockFence]*lockTerm
	steps     []step
	sealed    bool
	newest    schemas.Timestamp // the server's time of the latest record before the seal
	counts    Counts
	found     []Violation
}

// question names the event by which a run asked something of another workflow.
type question struct {
	schemas.Execution
	event int64
}

func (q question) String() string {
	return fmt.Sprintf("event %d of workflow %q run %s", q.event, q.WorkflowID, q.Run)
}

// Counts says how much was read.
type Counts struct {
	Workflows int `json:"workflows"`
	Runs      int `json:"runs"`
	Open      int `json:"open"`
	Records   int `json:"records"`
	Events    int `json:"events"`
	// Waiting are the children, signals and cancel requests that are not settled between the two
	// workflows, or that have only been read on one side.
	Waiting int `json:"waiting"`
}

// EndOptions say what may be concluded from what was not read.
type EndOptions struct {
	// Quiet says that all is at rest: what a run asked for has been carried out, and what came of
	// it has been reported. Without it only what came before its cause is missed.
	Quiet bool
	// Removed says that histories may have been removed: that a run is not there then proves
	// nothing.
	Removed bool
}

// NewNamespace returns a checker of all runs of a namespace.
func NewNamespace() *Namespace {
	return &Namespace{
		ids: make(map[string]*Workflow), canceled: make(map[schemas.Execution]bool),
		children: make(map[question]*child), externals: make(map[question]*externalRequest),
		lockTerms: make(map[lockFence]*lockTerm),
	}
}

// Record takes the next record of any run; see [History.Record]. A record that contradicts another
// workflow is reported as soon as both are read.
func (n *Namespace) Record(r *schemas.Record, body []byte, at schemas.Timestamp) []Violation {
	w := n.ids[r.WorkflowID]
	if w == nil {
		w = NewWorkflow(r.WorkflowID)
		w.witness, w.steppedBack = n.witness, n.stepBack
		n.ids[r.WorkflowID] = w
	}
	if _, known, _ := w.run(r.Run); !known {
		n.counts.Runs++
	}
	n.counts.Records++
	n.counts.Events += len(r.Events)
	if !n.sealed {
		n.newest = max(n.newest, at)
	}
	found := w.Record(r, body, at)
	return append(found, n.take()...)
}

// Seal says that the records up to here are to be judged, and those after only help to judge them.
// Whoever reads several streams of a living system gets each at another moment: an effect may be
// read and its cause not. So read all, seal, and read on to the new end of each: the causes of all
// that was read before are among it.
func (n *Namespace) Seal() { n.sealed = true }

// Counts returns how much was read up to now.
func (n *Namespace) Counts() Counts {
	c := n.counts
	c.Workflows, c.Waiting = len(n.ids), len(n.children)+len(n.externals)
	for _, w := range n.ids {
		if !w.current.Closed() {
			c.Open++
		}
	}
	return c
}

// successorDelay is how long a run that continued as new may stand without its successor while
// others are written. The successor comes directly after, but its owner may die between the two.
const successorDelay = schemas.Duration(60e9)

// End returns the rules that are broken if nothing follows, sorted by workflow, run and event.
func (n *Namespace) End(o EndOptions) []Violation {
	for _, w := range n.ids {
		if h := w.orphan; h != nil && !o.Removed {
			n.report(RuleContinuation, h.execution(), 1,
				"the run continues run %s, which has no record", h.predecessor)
		}
		for _, lost := range w.unfound {
			if !o.Removed {
				n.report(RuleReplay, schemas.Execution{WorkflowID: w.workflowID, Run: lost.run}, 1,
					"the run replays run %s, which has no record", lost.of)
			}
		}
		h := w.current
		late := h.records.newest == 0 ||
			schemas.Duration(n.newest-h.records.newest) <= successorDelay
		for _, v := range w.End() {
			if v.Rule == RuleContinuation && (o.Removed || late && !o.Quiet) {
				continue
			}
			n.found = append(n.found, v)
		}
	}
	for q, c := range n.children {
		n.endChild(q, c, o)
	}
	for q, x := range n.externals {
		n.endExternal(q, x, o)
	}
	n.endLocks()
	found := n.take()
	slices.SortFunc(found, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.WorkflowID, b.WorkflowID), cmp.Compare(a.Run, b.Run),
			cmp.Compare(a.EventID, b.EventID), cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Detail, b.Detail))
	})
	return found
}

func (n *Namespace) take() []Violation {
	found := n.found
	n.found = nil
	return found
}

func (n *Namespace) report(
	rule string, x schemas.Execution, event int64, format string, args ...any,
) {
	n.found = append(n.found, Violation{
		Rule: rule, WorkflowID: x.WorkflowID, Run: x.Run, EventID: event,
		Detail: fmt.Sprintf(format, args...),
	})
}

// run tells what is known of a run.
func (n *Namespace) run(x schemas.Execution) (p pastRun, known, closed bool) {
	return n.ids[x.WorkflowID].run(x.Run)
}

// provable tells whether it proves something that a run has no such event: it is there, or it must
// be.
func (n *Namespace) provable(x schemas.Execution, o EndOptions) bool {
	_, known, _ := n.run(x)
	return known || !o.Removed
}

// at is a place in a history. A late one was read after the seal: it is believed, and asks for
// nothing.
type at struct {
	schemas.Execution
	event int64
	late  bool
}

func (n *Namespace) here(h *History, e schemas.Event) at {
	return at{Execution: h.execution(), event: e.ID, late: n.sealed}
}

func (a at) set() bool { return a.event != 0 }

// due tells whether a place asks for something.
func (a at) due() bool { return a.set() && !a.late }

func (h *History) execution() schemas.Execution {
	return schemas.Execution{WorkflowID: h.workflowID, Run: h.run}
}

// witness takes an event that concerns other workflows.
func (n *Namespace) witness(h *History, e schemas.Event) {
	n.witnessLock(h, e)
	if !n.witnessParent(h, e) && !n.witnessErrand(h, e) {
		n.witnessChild(h, e)
	}
}
