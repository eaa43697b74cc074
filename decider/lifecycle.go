package decider

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// stop ends a Run: no more tasks, then those that run or wait, then, when time is up, none.
func (s *session) stop(
	work context.Context, cancel context.CancelCauseFunc, unsubscribe func(context.Context),
) error {
	s.draining.Store(true)
	drained, done := context.WithTimeout(work, max(s.opts.DrainTimeout, 0))
	defer done()
	unsubscribe(drained)
	s.pool.close()
	select {
	case <-s.pool.idle:
		s.listener.Leave()
		return nil
	case <-drained.Done():
	}
	waiting, running := s.pool.abandon()
	cancel(ErrStopped)
	if running == 0 {
		return nil // the last one was just in time
	}
	for _, a := range waiting {
		s.decline(work, a, ErrStopped)
	}
	err := fmt.Errorf("%w: %d were running and %d waiting after %v: the broker asks them again",
		ErrDrainTimeout, running, len(waiting), s.opts.DrainTimeout)
	patience := time.NewTimer(abandonAfter)
	defer patience.Stop()
	select {
	case <-s.pool.idle:
	case <-patience.C:
		err = errors.Join(err, errors.New("some ignore their context and still run"))
	}
	s.log.WithField("err", err).Warn("deciders were canceled to stop in time")
	return err
}
