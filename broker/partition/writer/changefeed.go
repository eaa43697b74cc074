package writer

import (
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/explain"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
)

const (
	// feedEvery is how long changed runs are gathered before they are told of, fullFeed how many of
	// them at most.
	feedEvery = 200 * time.Millisecond
	fullFeed  = 512
)

// changeFeed are what Options.Changed is to be told of: records that were acknowledged, one after
// the other, and the runs that they belong to.
type changeFeed struct {
	from, to uint64 // from is 0 if there are none
	changes  []change
	latest   map[feedKey]int // the index of the last change of each run
	later    bool            // a timer runs
}

// feedKey names a run: who starts one may choose its id, so the workflow id belongs to it.
type feedKey struct{ wid, run string }

// change is a record that was acknowledged. The state of its run may be ahead of it: only what
// later events do not change is taken from there.
type change struct {
	sequence uint64
	state    *execution.State // nil if a later record of the run is in the same span
	events   int64            // up to the record
	standing runs.Standing
}

// noteChange takes a record that is in the history. What is told has no gaps, so that whoever hears
// it need not read the records: any that were not written here, a fence or those of another owner,
// begin another span.
func (w *Writer) noteChange(r *actor.Run, c *actor.Commit) {
	if w.Env.Options.Changed == nil {
		return
	}
	n := &w.feed
	if n.from != 0 && c.Sequence != n.to+1 {
		w.tellFeed()
	}
	if n.from == 0 {
		n.from = c.Sequence
	}
	n.to = c.Sequence
	n.add(change{c.Sequence, r.State, r.Committed, c.Standing})
	switch {
	case len(n.latest) >= fullFeed:
		w.tellFeed()
	case !n.later:
		n.later = true
		w.Loop.After(feedEvery, func() {
			w.feed.later = false
			w.tellFeed()
		})
	}
}

// add keeps the changes in the order of their records.
func (n *changeFeed) add(c change) {
	if n.latest == nil {
		n.latest = map[feedKey]int{}
	}
	key := feedKey{c.state.WorkflowID, c.state.Run}
	if before, ok := n.latest[key]; ok {
		n.changes[before] = change{}
	}
	n.latest[key] = len(n.changes)
	n.changes = append(n.changes, c)
}

func (w *Writer) tellFeed() {
	n := &w.feed
	if n.from == 0 {
		return
	}
	all := make([]env.Change, 0, len(n.latest))
	for i := range n.changes {
		if c := &n.changes[i]; c.state != nil {
			all = append(all, c.public())
		}
	}
	w.Env.Options.Changed(w.Partition, n.from, n.to, all)
	n.from = 0
	clear(n.changes) // the states
	n.changes = n.changes[:0]
	clear(n.latest)
}

// public is what [runs.ReadLine] reads off the headers of the record, but for the time at which a run
// has closed, and why a run has failed.
func (c *change) public() env.Change {
	s := c.state
	l := runs.Line{
		ExecutionInfo: explain.Info(s), Retention: c.standing.Retention,
		FirstRun: s.Start.FirstExecutionRun,
	}
	l.Status, l.Attributes, l.Events = c.standing.Status, c.standing.Attributes, c.events
	d := env.Change{Sequence: c.sequence, Line: l}
	if l.Status.Closed() {
		d.Reason = runs.Reason(s.Close)
	} else {
		d.Line.ClosedAt = 0 // its close is not in the history
	}
	return d
}
