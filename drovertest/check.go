package drovertest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

const (
	checkLimit = time.Minute
	// shown is how many histories the log of a failed test has room for.
	shown = 20
)

// check fails the test if a history breaks a rule or is not that of its workflow code, and shows
// the histories of a test that has failed. Nobody writes histories meanwhile.
func (e *Env) check() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.t.Context()), checkLimit)
	defer cancel()
	b := &histories{checker: checker.NewNamespace(), at: map[string]int{}}
	for p := range e.o.Partitions {
		b.next, b.fence = 1, e.ns.Fence(p)
		if err := e.conn.Scan(ctx, e.ns.StreamHistory(p), natsconn.ReadOptions{}, b.take); err != nil {
			e.t.Errorf("drovertest: the histories of partition %d cannot be checked: %v", p, err)
		}
	}
	// What workflows said to one another may still be on its way.
	for _, v := range append(b.found, b.checker.End(checker.EndOptions{Removed: b.removed})...) {
		e.t.Errorf("drovertest: a history breaks a rule, which is a bug of Drover: %v", v)
	}
	if e.o.Replays > 0 {
		e.replay(ctx, b.runs)
	}
	if e.t.Failed() {
		b.show(e.t)
		if e.seeded {
			e.t.Logf("runs left the memory of their workers by Options.Seed: %d", e.o.Seed)
		}
	}
}

// histories is all histories as they were read.
type histories struct {
	checker *checker.Namespace
	found   []checker.Violation
	runs    []*record
	at      map[string]int // of a run in runs
	// removed: numbers are missing, so retention has purged runs. next is the number that should
	// come, fence the subject of what is no record of a run.
	removed bool
	next    uint64
	fence   string
}

// record is a run.
type record struct {
	workflowID, run string
	events          History
}

func (b *histories) take(s natsconn.Stored) error {
	b.removed, b.next = b.removed || s.Seq != b.next, s.Seq+1
	if s.Subject == b.fence {
		return nil
	}
	var r schemas.Record
	if err := schemas.Unmarshal(s.Data, &r); err != nil {
		return fmt.Errorf("record %d: %w", s.Seq, err)
	}
	b.found = append(b.found, b.checker.Record(&r, s.Data, schemas.At(s.Time))...)
	at, known := b.at[r.Run]
	if !known {
		at = len(b.runs)
		b.at[r.Run] = at
		b.runs = append(b.runs, &record{workflowID: r.WorkflowID, run: r.Run})
	}
	b.runs[at].events = append(b.runs[at].events, r.Events...)
	return nil
}

func (b *histories) show(t testing.TB) {
	for _, r := range b.runs[:min(len(b.runs), shown)] {
		t.Logf("history of workflow %q run %s:\n%s", r.workflowID, r.run, r.events.timeline())
	}
	if more := len(b.runs) - shown; more > 0 {
		t.Logf("… and %d histories more", more)
	}
}
