package env

import (
	"context"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/clock"
	"github.com/droverhq/drover/schemas"
)

// clockEvery is how often the server is asked for its time. Nothing else is learned from: the
// leaders of other streams, which stamp what is read, may be servers with another clock, and the
// estimate would go back and forth by the difference, with all that is due.
const clockEvery = 30 * time.Second

// ClockSkew is more than the clocks of two servers of a cluster differ by.
const ClockSkew = time.Minute

// exchanges are asked for one after the other: deadlines are late by what the fastest takes.
const exchanges = 3

// serverClock is an estimate of the server's clock.
type serverClock struct {
	clock.Server
	doubt chan struct{} // holds a value when a timer worker has another clock
}

// WatchClock asks the server for its time again and again, until ctx ends.
func (e *Env) WatchClock(ctx context.Context) {
	var wall clock.Wall
	for wall.Wait(ctx, clockEvery, e.clock.doubt) == nil {
		if err := e.AskTime(ctx); err != nil && ctx.Err() == nil {
			e.Options.Logger.WithError(err).Debug("the server does not tell its time now")
		}
	}
}

// DoubtClock has the server asked at once: the stream that is asked may have a new leader, with
// another clock, of which the timer worker knows and we do not, or the other way around.
func (e *Env) DoubtClock() {
	select {
	case e.clock.doubt <- struct{}{}:
	default:
	}
}

// AskTime takes a fresh reading of the clock that stamps the records.
func (e *Env) AskTime(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ReadTimeout)
	defer cancel()
	for range exchanges {
		asked := time.Now() // of several tries the first: the bound is then too high, and still one
		at, err := e.Reads.StreamTime(ctx, e.NS.StreamHistory(0))
		if err != nil {
			return fmt.Errorf("stream %s: %w", e.NS.StreamHistory(0), err)
		}
		e.clock.ObserveExchange(asked, at, time.Now())
	}
	return nil
}

func (e *Env) Now() schemas.Timestamp { return schemas.At(e.clock.Now(time.Now())) }

// Latest is a time at or after that of the server: no record that is acknowledged by now has a
// later stamp.
func (e *Env) Latest() schemas.Timestamp {
	local := time.Now()
	return max(schemas.At(e.clock.Now(local)).Add(rebaseMargin), schemas.At(e.clock.Latest(local)))
}

// rebaseMargin is how far at least the base of deadlines lies after the corrected clock at an
// acknowledgement. The bound from above says that for certain, as long as both clocks go at one
// rate.
const rebaseMargin = schemas.Duration(500 * time.Microsecond)
