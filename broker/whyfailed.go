package broker

import (
	"context"
	"fmt"
	"strings"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// mostOfReason bounds what a sentence tells of a failure. The history has more.
const mostOfReason = 500

// tries is what a run has failed at and tries again, as far as the state tells: why, stands in the history alone.
type tries struct {
	decider    bool
	activities map[int64]*execution.Activity
}

// triesOf finds what waits for its next attempt; nil if nothing does.
func (p *partition) triesOf(r *run) *tries {
	if !r.open() {
		return nil
	}
	t := &tries{decider: r.backingUp && r.state.Decision.Failures > 0 && r.state.Decision.Refusal == "", activities: map[int64]*execution.Activity{}}
	for _, a := range r.state.OpenActivities() {
		if a.Started == 0 && a.Attempt > 1 && a.NotBefore > p.now() {
			t.activities[a.ScheduledID] = new(*a)
		}
	}
	if !t.decider && len(t.activities) == 0 {
		return nil
	}
	return t
}

// failed tells how the last attempt went, where the last record of the run says so. It is one read, however long the history is;
// what has failed before something else happened is left to "drover history".
func (b *Broker) failed(ctx context.Context, partition int, wid, run string, t *tries) (string, error) {
	subj := b.ns.History(partition, wid, run)
	m, err := b.reads.LastBySubject(ctx, b.ns.StreamHistory(partition), subj)
	if err != nil {
		return "", fmt.Errorf("read the end of %s: %w", subj, err)
	}
	var r schemas.Record
	if !runs.IsRecord(m) {
		return "", nil
	}
	if err := schemas.Unmarshal(m.Data, &r); err != nil {
		return "", fmt.Errorf("record %d of %s: %w; run drover verify", m.Seq, subj, err)
	}
	return t.last(r.Events), nil
}

// last is the clause about the last of the failures among the events; "" if none of them is one that is tried again.
func (t *tries) last(events []schemas.Event) (clause string) {
	for _, e := range events {
		switch x := e.Attributes.(type) {
		case *schemas.DeciderFailed:
			if t.decider {
				clause = "; it failed with: " + brief(x.Reason)
			}
		case *schemas.DeciderTimedOut:
			if t.decider {
				clause = "; it did not answer in time"
			}
		case *schemas.ActivityRetryScheduled:
			if a := t.activities[x.ScheduledEventID]; a != nil && a.Attempt == x.Attempt+1 {
				clause = fmt.Sprintf("; attempt %d of activity %q failed with: %s", x.Attempt, a.Scheduled.ActivityID, brief(x.Cause))
			}
		}
	}
	return clause
}

// brief is so much of a reason as a sentence can take.
func brief(reason string) string {
	if len(reason) <= mostOfReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:mostOfReason], "") + "…"
}
