package timers

import (
	"context"
	"time"

	"github.com/droverhq/drover/internal/pause"
)

// The server's clock is asked often at first, to find a quick answer, then now and then.
const (
	firstLook = 500 * time.Millisecond
	lastLook  = 15 * time.Second
	lookLimit = 5 * time.Second
)

// watchClock asks for the time of the inbox's leader until ctx ends. The timestamps of alarms would not do: they are those
// of another stream, whose leader may be another server with another clock, and one that is read late tells little.
func (s *spell) watchClock(ctx context.Context) {
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		if err := s.lookAtClock(ctx); err != nil && ctx.Err() == nil {
			s.log.WithField("err", err).Warn("the server's time is not known; asking again")
			wait = firstLook
		}
		if pause.For(ctx, wait) != nil {
			return
		}
	}
}

func (s *spell) lookAtClock(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	asked := s.now()
	stream, err := s.conn.JetStream().Stream(ctx, s.ns.StreamIn(s.partition))
	received := s.now()
	if err != nil {
		return err
	}
	s.clock.ObserveExchange(asked, stream.CachedInfo().TimeStamp, received)
	kick(s.wake)
	return nil
}
