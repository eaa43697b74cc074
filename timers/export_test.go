package timers

import (
	"context"
	"time"
)

// SetClock replaces the local clock.
func (w *Worker) SetClock(now func() time.Time) { w.now = now }

// SetMostAlarms makes the worker hold fewer alarms.
func (w *Worker) SetMostAlarms(n int) { w.mostAlarms = n }

// DeleteAfterReconnect deletes an alarm of partition 0 that was rung before the connection was lost.
func (w *Worker) DeleteAfterReconnect(ctx context.Context, seq uint64, subject string, due time.Time) error {
	s := newTerm(w, 0, nil)
	sc := tombstone{seq: seq, subject: subject, due: due.UnixNano(), epoch: s.epoch}
	s.reconnected()
	return s.delete(ctx, sc)
}
