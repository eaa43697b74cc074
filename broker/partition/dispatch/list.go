package dispatch

import (
	"context"
	"time"

	"github.com/droverhq/drover/broker/partition/env"
	"github.com/sirupsen/logrus"
)

// refusedListKept is longer than the try that follows a refusal may take.
const refusedListKept = time.Minute

// openList makes the stream of a task list; whoever asks meanwhile waits for the same answer.
func (d *Dispatch) openList(list string, then func()) {
	d.missingStreams[list] = append(d.missingStreams[list], then)
	if len(d.missingStreams[list]) > 1 {
		return
	}
	env.WriteAsync(d.Env, d.Loop, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, d.Env.EnsureList(ctx, list)
	}, func(_ struct{}, err error) {
		waiting, before := d.missingStreams[list], d.refusedLists[list]
		delete(d.missingStreams, list)
		delete(d.refusedLists, list)
		delay := time.Duration(0)
		if err != nil {
			d.refuseList(list, err)
			level := logrus.ErrorLevel
			if before != nil && before.err.Error() == err.Error() {
				// told already: somebody must change something first
				level = logrus.DebugLevel
			}
			d.Log.WithError(err).WithField("list", list).Log(level,
				"the task list cannot be made; trying again")
			delay = 5 * env.EffectRetry
		}
		for _, f := range waiting {
			d.Loop.After(delay, f)
		}
	})
}

// refusedList is why a list could not be made the last time.
type refusedList struct{ err error }

// refuseList remembers it for as long as somebody may try again: those who do so no more leave
// nothing after.
func (d *Dispatch) refuseList(list string, err error) {
	r := &refusedList{err}
	d.refusedLists[list] = r
	d.Loop.After(refusedListKept, func() {
		if d.refusedLists[list] == r {
			delete(d.refusedLists, list)
		}
	})
}

// ListRefusal is why a list could not be made the last time; nil if it was not refused.
func (d *Dispatch) ListRefusal(list string) error {
	if r := d.refusedLists[list]; r != nil {
		return r.err
	}
	return nil
}
