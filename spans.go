package drover

import (
	"cmp"
	"context"
	"fmt"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// Timeline is what a run does and waits for.
type Timeline struct {
	// Run is the id of the run, Base when it began: the times of the spans are microseconds since
	// then, and -1 where there is none yet.
	Run  string
	Base schemas.Timestamp
	// Spans are as many as each of their arrays has elements, in the order of the events that began
	// them.
	ops.Spans
	// Lane is where each span is drawn: 0 for decisions, from 1 on for the others, and the lane of
	// its activity for an attempt. Spans of one lane do not overlap, attempts and their activity
	// aside.
	Lane []int
	// Last is the last event that was looked at. Closed says that nothing follows it.
	Last   int64
	Closed bool
}

// Spans reads the whole history of the run as spans of time: decisions, activities and their
// attempts, timers, children, locks and so on. It is a small part of what the history has; the
// event of each span leads there.
//
// Errors: [ErrNotFound], [ErrInvalid], [ErrUnavailable], [ErrTimeout].
func (r *Run) Spans(ctx context.Context) (*Timeline, error) {
	q, err := r.query("spans", 0)
	if err != nil {
		return nil, err
	}
	m := spanMerge{at: map[int64]int{}, open: map[string]int{}}
	for {
		req := &ops.SpansRequest{V: schemas.Version, WorkflowID: r.ID, Run: q.run, After: m.Last}
		page, err := call(ctx, r.client, q, req,
			func(a *ops.SpansResponse) *schemas.Error { return a.Error })
		if err != nil {
			return nil, err
		}
		q.run = cmp.Or(page.Run, q.run)
		if page.More && page.Next <= m.Last {
			return nil, newError(q, fmt.Errorf(
				"a page after event %d ends there, and says that there is more", m.Last))
		}
		if err := m.add(&page.Spans); err != nil {
			return nil, newError(q, err)
		}
		m.Run, m.Base, m.Last, m.Closed = page.Run, page.Base, page.Next, page.Closed
		if !page.More {
			m.layOut()
			return &m.Timeline, nil
		}
	}
}
