package timers

import (
	"context"
	"time"

	"github.com/droverhq/drover/broker/clock"
)

// The server's clock is asked often at first, to find a quick answer, then now and then.
const (
	firstLook = 500 * time.Millisecond
	lastLook  = 15 * time.Second
	lookLimit = 5 * time.Second
)

// watchClock asks for the time of the server that brokers ask too, until ctx ends. That of another
// stream would not do, nor the timestamps of alarms: its leader may be another server with another
// clock, and an alarm that is read late tells little. It asks at once when the owner has refused a
// ring: one of the two may have a clock that is over, because the leader of that stream has moved.
func (s *term) watchClock(ctx context.Context) {
	var wall clock.Wall
	said := "" // the last error that was logged: each look may fail of the same
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		switch err := s.lookAtClock(ctx); {
		case err == nil:
			said = ""
		case ctx.Err() == nil:
			if text := err.Error(); text != said {
				said = text
				s.log.WithField("err", err).Warn("the server's time is not known; asking again")
			}
			wait = firstLook
		}
		if wall.Wait(ctx, wait, s.doubt) != nil {
			return
		}
	}
}

func (s *term) lookAtClock(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	asked := s.now()
	at, err := s.conn.StreamTime(ctx, s.ns.StreamHistory(0))
	received := s.now()
	if err != nil {
		return err
	}
	s.clock.ObserveExchange(asked, at, received)
	kick(s.wake)
	return nil
}
