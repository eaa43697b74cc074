package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/droverhq/drover/schemas"
)

// Err reports that events of a history could not be read.
var Err = errors.New("history of the run cannot be read")

// pageEvents is how many events are asked for at once. The broker may answer with fewer.
const pageEvents = 500

// Known is what a worker knows of the history of a task's run, beside the window in the task.
type Known struct {
	// Pages reads what is lacking. It is nil for a task without a worker.
	Pages Pager
	// Window is the size of the window on the wire, bytes.
	Window int
	// past holds the events from 1 on that are known, at most up to the window. It may share memory
	// with the cache.
	past []schemas.Event
	// pastBytes is the size of past on the wire.
	pastBytes int
	// base is the reply of this worker that the broker has proven to be the last committed one.
	base  *reply
	reads atomic.Int64
}

// Continued returns the token of the task whose answer is the last committed one, and whether it
// was this worker's.
func (k *Known) Continued() (token string, ok bool) {
	if k.base == nil {
		return "", false
	}
	return k.base.token, true
}

// Reads is how often pages were asked for.
func (k *Known) Reads() int { return int(k.reads.Load()) }

// Each yields the events from 1 to the task's DeciderStarted; of a question about a replay, all of
// the run that has ended. What is not known is read, and once only. After an error nothing follows.
func (k *Known) Each(
	ctx context.Context, t *schemas.DecisionTask, yield func(schemas.Event, error) bool,
) {
	if t.Replay != nil {
		k.ended(ctx, t, yield)
		return
	}
	for i := 0; int64(i) < t.PreviousStartedID; i++ {
		if i == len(k.past) {
			if err := k.readPast(ctx, t); err != nil {
				yield(schemas.Event{}, err)
				return
			}
		}
		if !yield(k.past[i], nil) {
			return
		}
	}
	for _, e := range t.Events {
		if !yield(e, nil) {
			return
		}
	}
}

// readPast reads the next page before the window.
func (k *Known) readPast(ctx context.Context, t *schemas.DecisionTask) error {
	known, want := int64(len(k.past)), t.PreviousStartedID
	events, _, size, err := k.page(ctx, t, known, want)
	if err != nil {
		return err
	}
	if len(events) == 0 {
		return fmt.Errorf(
			"%w: it ends at event %d, before the window of this task, which begins after %d",
			Err, known, want)
	}
	k.past = append(k.past, events...)
	k.pastBytes += size
	return nil
}

// ended yields the history of a run that has ended, page by page.
func (k *Known) ended(
	ctx context.Context, t *schemas.DecisionTask, yield func(schemas.Event, error) bool,
) {
	for after, more := int64(0), true; more; {
		var events []schemas.Event
		var err error
		if events, more, _, err = k.page(ctx, t, after, after+pageEvents); err != nil {
			yield(schemas.Event{}, err)
			return
		}
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
			after = e.ID
		}
		more = more && len(events) > 0
	}
}

// WindowEnd is the last event that the window of a task holds.
func WindowEnd(t *schemas.DecisionTask) int64 { return t.PreviousStartedID + int64(len(t.Events)) }

// Lacking tells whether events of the window are missing. The DeciderStarted at its end is allowed
// to: the broker writes it with the answer at the latest.
func Lacking(t *schemas.DecisionTask) bool {
	end := WindowEnd(t)
	return end < t.StartedID-1 || end < t.StartedID && t.More
}

// FillWindow reads what the window lacks.
func (k *Known) FillWindow(ctx context.Context, t *schemas.DecisionTask) error {
	for Lacking(t) {
		end := WindowEnd(t)
		events, more, size, err := k.page(ctx, t, end, t.StartedID)
		if err != nil {
			return err
		}
		if len(events) == 0 && end < t.StartedID-1 {
			return fmt.Errorf(
				"%w: it ends at event %d, within the window of this task, which ends at %d",
				Err, end, t.StartedID)
		}
		t.Events = append(t.Events, events...)
		k.Window += size
		t.More = more && len(events) > 0
	}
	t.More = false
	return nil
}

// page reads events after after and up to last. Both history before the window and a window that
// did not fit come through here, so nothing after the task's DeciderStarted can.
func (k *Known) page(
	ctx context.Context, t *schemas.DecisionTask, after, last int64,
) ([]schemas.Event, bool, int, error) {
	if k.Pages == nil {
		return nil, false, 0, fmt.Errorf(
			"%w: the task has no worker and holds no event after %d: make it with a window from event 1",
			Err, after)
	}
	k.reads.Add(1)
	events, more, size, err := k.Pages(ctx, t, after, int(min(last-after, pageEvents)))
	if err != nil {
		return nil, false, 0, err
	}
	got := Contiguous(events, after, last)
	if len(got) == 0 && len(events) > 0 && events[0].ID <= last {
		return nil, false, 0, fmt.Errorf("%w: a page after event %d begins with %d",
			Err, after, events[0].ID)
	}
	return got, more, size, nil
}

// Contiguous returns the events after after and up to last, as far as they follow each other
// without a gap.
func Contiguous(events []schemas.Event, after, last int64) []schemas.Event {
	from := slices.IndexFunc(events, func(e schemas.Event) bool { return e.ID == after+1 })
	if from < 0 {
		return nil
	}
	events = events[from:]
	for i, e := range events {
		if e.ID != after+1+int64(i) || e.ID > last {
			return events[:i:i]
		}
	}
	return events
}
