package drover

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// HistoryOptions of [Run.History].
type HistoryOptions struct {
	// After skips the events up to this id. Defaults to 0, the beginning.
	After int64
	// Follow goes on with new events until the run has closed. Defaults to false: it ends with the
	// last event there is.
	Follow bool
	// Payloads fetches what is large, and puts it in place of its references: see [Client.Payload].
	// Defaults to false.
	Payloads bool
	// OnSoft is called once, before the first event, if the run is purged from disk and the master
	// of the namespace remembers it. Defaults to none.
	OnSoft func()
	// OnReplayed is called once, after the last event of a run that has ended, with the latest run
	// that repeats it, if there is one. Defaults to none.
	OnReplayed func(run string)
}

// History yields the events of one run in order, without gap or repeat, also across lost
// connections and changes of the server. If RunID is empty, the run is chosen by the first answer.
// The sequence ends at the last event, with Follow at the closing one, or with an error, which is
// its last value. Each use of the sequence reads anew.
func (r *Run) History(ctx context.Context, o HistoryOptions) iter.Seq2[schemas.Event, error] {
	return func(yield func(schemas.Event, error) bool) {
		if err := r.history(ctx, o, func(e schemas.Event) bool { return yield(e, nil) }); err != nil {
			yield(schemas.Event{}, err)
		}
	}
}

func (r *Run) history(ctx context.Context, o HistoryOptions, yield func(schemas.Event) bool) error {
	var held time.Duration
	if o.Follow {
		held = hold
	}
	q, err := r.query("history", held)
	if err != nil {
		return err
	}
	wait, soft := firstBackoff, false
	for after := max(o.After, 0); ; {
		asked := time.Now()
		req := &schemas.HistoryRequest{
			V: schemas.Version, WorkflowID: r.ID, Run: q.run, After: after,
		}
		if o.Follow {
			req.Wait = holds(ctx)
		}
		page, err := call(ctx, r.client, q, req,
			func(a *schemas.HistoryResponse) *schemas.Error { return a.Error })
		if err != nil {
			return err
		}
		q.run = cmp.Or(page.Run, q.run)
		if o.Follow {
			q.open = time.Now()
		}
		if page.Soft && !soft && o.OnSoft != nil {
			soft = true
			o.OnSoft()
		}
		for _, e := range page.Events {
			if e.ID <= after {
				continue
			}
			if e.ID != after+1 {
				return newError(q, fmt.Errorf(
					"the history has event %d after event %d: run \"drover verify\"", e.ID, after))
			}
			if o.Payloads {
				if e, err = r.client.whole(ctx, q, e); err != nil {
					return err
				}
			}
			if !yield(e) {
				return nil
			}
			after = e.ID
		}
		if page.Closed && page.ReplayedBy != "" && o.OnReplayed != nil {
			o.OnReplayed(page.ReplayedBy)
		}
		switch {
		case page.More && len(page.Events) > 0:
		case page.More:
			return newError(q, fmt.Errorf(
				"an empty page after event %d says that there is more: run \"drover verify\"",
				after))
		case page.Closed || !o.Follow:
			return nil
		case len(page.Events) > 0:
			wait = firstBackoff
		case time.Since(asked) < hold/2:
			// The server did not hold the answer back: do not spin.
			if sleep.For(ctx, wait) != nil {
				return newError(q, outlived(ctx, ctx.Err()))
			}
			wait = min(2*wait, lastBackoff)
		}
	}
}
