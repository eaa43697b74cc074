package partition

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

const (
	// mostSuggesting is how many runs of a partition are asked to continue at once: each may have
	// to be read.
	mostSuggesting = 32
	// suggestWait is how long is waited for one of them.
	suggestWait = 10 * time.Second
)

func (p *Partition) SuggestContinuations(ctx context.Context) (int, error) {
	wids, err := p.withPolicies(ctx)
	if err != nil {
		return 0, err
	}
	var asked atomic.Int64
	var all sync.WaitGroup
	slots := make(chan struct{}, mostSuggesting)
	for _, wid := range wids {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			all.Wait()
			return int(asked.Load()), ctx.Err()
		}
		all.Go(func() {
			defer func() { <-slots }()
			if p.suggestContinuation(ctx, wid) {
				asked.Add(1)
			}
		})
	}
	all.Wait()
	return int(asked.Load()), nil
}

// withPolicies are the workflow ids whose open run has a continuation policy, in the order of the
// last records.
func (p *Partition) withPolicies(ctx context.Context) ([]string, error) {
	last := map[string]uint64{}
	err := p.Env.Reads.Scan(ctx, p.Env.NS.StreamHistory(p.Partition),
		natsconn.ReadOptions{HeadersOnly: true}, func(s natsconn.Stored) error {
			status := schemas.HeaderStatus(s.Header.Get(schemas.StatusHeader))
			if status == "" {
				return nil
			}
			_, wid, _, err := subject.ParseHistory(s.Subject)
			switch {
			case err != nil: // verify tells of it
			case !status.Closed() && runs.HasPolicy(s):
				last[wid] = s.Seq
			default:
				delete(last, wid)
			}
			return nil
		})
	wids := slices.SortedFunc(maps.Keys(last),
		func(a, b string) int { return cmp.Compare(last[a], last[b]) })
	return wids, err
}

// suggestContinuation asks the open run of a workflow to continue as new, and tells whether that is
// in the history.
func (p *Partition) suggestContinuation(ctx context.Context, wid string) bool {
	ctx, cancel := context.WithTimeout(ctx, suggestWait)
	defer cancel()
	done := make(chan bool, 1)
	p.whileOurs(func() {
		r := p.cache.Get(wid)
		p.cache.WhenKnown(r, func() {
			if !r.Open() || len(r.Mailbox) > 0 {
				done <- false
				return
			}
			p.deliver(r, &actor.Message{
				WorkflowID: wid, Event: execution.Recycle{}, At: p.now(), Log: noLog,
				Answer: func(_ *actor.Run, events []schemas.Event) {
					done <- len(events) > 0
				},
			})
		}, func() { done <- false })
	})
	select {
	case asked := <-done:
		return asked
	case <-ctx.Done(): // or the partition is another's by now
	case <-p.Env.Background.Done():
	}
	return false
}
