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
	// feedEvery is how long closed runs are gathered before they are told of, fullFeed how many of
	// them at most.
	feedEvery = 200 * time.Millisecond
	fullFeed  = 512
)

// closedFeed are what Options.Closed is to be told of: records that were acknowledged, one after
// the other, and what they have closed.
type closedFeed struct {
	from, to uint64 // from is 0 if there are none
	runs     []env.Closing
	before   int  // how many there were the last time
	later    bool // a timer runs
}

// noteClosing takes a record that is in the history. What is told has no gaps, so that whoever
// hears it need not read the records: any that were not written here, a fence or those of another
// owner, begin another span.
func (w *Writer) noteClosing(r *actor.Run, c *actor.Commit) {
	if w.Env.Options.Closed == nil {
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
	if c.Events[len(c.Events)-1].Type().Closes() { // nothing follows that
		if n.runs == nil {
			n.runs = make([]env.Closing, 0, n.before+1)
		}
		n.runs = append(n.runs, env.Closing{Sequence: c.Sequence, Line: lineOf(r.State)})
	}
	switch {
	case len(n.runs) >= fullFeed:
		w.tellFeed()
	case !n.later:
		n.later = true
		w.Loop.After(feedEvery, func() {
			w.feed.later = false
			w.tellFeed()
		})
	}
}

func (w *Writer) tellFeed() {
	if n := &w.feed; n.from != 0 {
		w.Env.Options.Closed(w.Partition, n.from, n.to, n.runs)
		n.from, n.runs, n.before = 0, nil, len(n.runs)
	}
}

// lineOf is what [runs.ReadLine] reads off the headers of the last record, but for the time.
func lineOf(s *execution.State) runs.Line {
	return runs.Line{
		ExecutionInfo: explain.Info(s), Retention: s.Keeping(), FirstRun: s.Start.FirstExecutionRun,
	}
}
