package decider

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// announceRetry is the time between two tries while the connection does not let an announcement
// through.
const announceRetry = time.Second

// again is called after a reconnect. It must not block.
func (s *session) again() {
	select {
	case s.reconnected <- struct{}{}:
	default:
	}
}

// announceUntilDone announces the types, once at the beginning and once after each reconnect, until
// ctx is done.
func (s *session) announceUntilDone(ctx context.Context, types func() []string) {
	for {
		err := s.announce(ctx, types())
		if err == nil {
			select {
			case <-ctx.Done():
				return
			case <-s.reconnected:
			}
			continue
		}
		if ctx.Err() != nil {
			return
		}
		s.log.WithField("err", err).
			Warn("deciders could not announce themselves, trying again; runs that wait may wait longer")
		retry := time.NewTimer(announceRetry)
		select {
		case <-ctx.Done():
		case <-s.reconnected:
		case <-retry.C:
		}
		retry.Stop()
	}
}

// announce tells the brokers that the types are served. The subscriptions are flushed first: an
// announcement that overtook them would make the broker ask nobody once more.
func (s *session) announce(ctx context.Context, types []string) error {
	if err := s.conn.Flush(ctx); err != nil {
		return err
	}
	for _, typ := range types {
		body, err := schemas.MarshalJSON(
			&schemas.Announcement{V: schemas.Version, Type: typ, Worker: s.opts.Identity},
		)
		if err != nil {
			return err
		}
		if err := s.conn.Publish(s.ns.Announce(typ), nil, body); err != nil {
			return err
		}
	}
	return nil
}

// stop ends a shift: no more tasks, then those that run or wait, then, when time is up, none.
func (s *session) stop(
	work context.Context,
	cancel context.CancelCauseFunc,
	subs []natsconn.Subscription,
) error {
	s.draining.Store(true)
	drained, done := context.WithTimeout(work, max(s.opts.DrainTimeout, 0))
	defer done()
	s.unsubscribe(drained, subs)
	s.pool.close()
	select {
	case <-s.pool.idle:
		s.leave()
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
	err := fmt.Errorf(
		"%w: %d were running and %d waiting after %v: the broker asks them again",
		ErrDrainTimeout,
		running,
		len(waiting),
		s.opts.DrainTimeout,
	)
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

// unsubscribe returns when everything that was received is in the pool and the server sends no
// more. A task that is on its way on an in-process connection is lost to this worker, and the
// broker asks again after its timeout.
func (s *session) unsubscribe(ctx context.Context, subs []natsconn.Subscription) {
	var wg sync.WaitGroup
	for _, sub := range subs {
		wg.Go(func() {
			if err := sub.Drain(ctx); err != nil {
				_ = sub.Close() // out of time, or out of connection
			}
		})
	}
	wg.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonAfter)
	defer cancel()
	if err := s.conn.Flush(ctx); err != nil {
		s.log.WithField("err", err).
			Debug("the server has not confirmed that the decider worker listens no more")
	}
}
