package drover

import (
	"cmp"
	"context"
	"errors"
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
	// Before skips the events from this id on. Defaults to 0: none is skipped.
	Before int64
	// NewestFirst yields the last event first, and so on. Defaults to false.
	NewestFirst bool
	// Types are those of the events that are yielded. Defaults to all.
	Types []schemas.EventType
	// Limit is how many events are yielded at most. Defaults to 0, all.
	Limit int
	// Follow goes on with new events until the run has closed. Defaults to false: it ends with the
	// last event there is. With Before or NewestFirst it is an error.
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
// connections and changes of the server. Any part of a long history costs the same; events of some
// types are found by looking at all. If RunID is empty, the run is chosen by the first answer.
// The sequence ends at the last event, with Follow at the closing one, or with an error, which is
// its last value. Each use of the sequence reads anew.
func (r *Run) History(ctx context.Context, o HistoryOptions) iter.Seq2[schemas.Event, error] {
	return func(yield func(schemas.Event, error) bool) {
		if err := r.history(ctx, o, func(e schemas.Event) bool { return yield(e, nil) }); err != nil {
			yield(schemas.Event{}, err)
		}
	}
}

// historyRead is what a read of a history has come to.
type historyRead struct {
	o      HistoryOptions
	q      query
	edge   int64 // the last event that was looked at; 0 if the newest come first and none was
	events int   // that were yielded
	yield  func(schemas.Event) bool
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
	h := &historyRead{o: o, q: q, edge: max(o.After, 0), yield: yield}
	if o.NewestFirst {
		h.edge = o.Before
	}
	if o.Follow && (o.NewestFirst || o.Before != 0) {
		return newError(q, errors.New("HistoryOptions: Follow goes on in the order of the events, "+
			"and has no end: leave out NewestFirst and Before"))
	}
	wait, soft := firstBackoff, false
	for {
		asked := time.Now()
		req := h.request(r.ID)
		if o.Follow {
			req.Wait = holds(ctx)
		}
		page, err := call(ctx, r.client, h.q, req,
			func(a *schemas.HistoryResponse) *schemas.Error { return a.Error })
		if err != nil {
			return err
		}
		h.q.run = cmp.Or(page.Run, h.q.run)
		if o.Follow {
			h.q.open = time.Now()
		}
		if page.Soft && !soft && o.OnSoft != nil {
			soft = true
			o.OnSoft()
		}
		before := h.edge
		if more, err := h.take(ctx, r.client, page); err != nil || !more {
			return err
		}
		if page.Closed && page.ReplayedBy != "" && o.OnReplayed != nil {
			o.OnReplayed(page.ReplayedBy)
		}
		switch {
		case page.More && h.edge != before:
		case page.More:
			return newError(h.q, fmt.Errorf(
				"an empty page after event %d says that there is more: run \"drover verify\"",
				h.edge))
		case page.Closed || !o.Follow:
			return nil
		case len(page.Events) > 0:
			wait = firstBackoff
		case time.Since(asked) < hold/2 && h.edge == before:
			// The server did not hold the answer back: do not spin.
			if sleep.For(ctx, wait) != nil {
				return newError(h.q, outlived(ctx, ctx.Err()))
			}
			wait = min(2*wait, lastBackoff)
		}
	}
}

// request asks for the next page.
func (h *historyRead) request(id string) *schemas.HistoryRequest {
	req := &schemas.HistoryRequest{
		V: schemas.Version, WorkflowID: id, Run: h.q.run, After: h.edge, Before: h.o.Before,
		NewestFirst: h.o.NewestFirst, Types: h.o.Types,
	}
	if h.o.NewestFirst {
		req.After, req.Before = max(h.o.After, 0), h.edge
	}
	if h.o.Limit > 0 {
		req.Limit = h.o.Limit - h.events
	}
	return req
}

// take yields the events of a page. more is false if nothing more is wanted.
func (h *historyRead) take(
	ctx context.Context, c *Client, page *schemas.HistoryResponse,
) (more bool, err error) {
	for _, e := range page.Events {
		if !h.o.NewestFirst && e.ID <= h.edge {
			continue
		}
		if !h.follows(e.ID) {
			return false, newError(h.q, fmt.Errorf(
				"the history has event %d after event %d: run \"drover verify\"", e.ID, h.edge))
		}
		h.edge = e.ID
		if h.o.Payloads {
			if e, err = c.whole(ctx, h.q, e); err != nil {
				return false, err
			}
		}
		if !h.yield(e) {
			return false, nil
		}
		if h.events++; h.events == h.o.Limit {
			return false, nil
		}
	}
	h.edge = cmp.Or(page.Next, h.edge)
	return true, nil
}

// follows tells whether an event may come next.
func (h *historyRead) follows(id int64) bool {
	switch some := len(h.o.Types) > 0; {
	case !h.o.NewestFirst:
		return id == h.edge+1 || some && id > h.edge
	case h.edge == 0:
		return true
	default:
		return id == h.edge-1 || some && id < h.edge
	}
}
