package activity

import (
	"errors"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/schemas"
)

// What waits for its turn has one timer, however often it is said, and nothing is sent after it twice.
func TestBeatsThatWait(t *testing.T) {
	b := &beats{attempt: &attempt{delivery: &delivery{}}, interval: time.Hour, last: time.Now()} // without a connection: who sends panics
	for i := range 3 {
		first := b.timer
		if err := b.beat(t.Context(), nil); err != nil || !b.pending || i > 0 && b.timer != first {
			t.Fatalf("got %v, pending: %v, want one timer for all", err, b.pending)
		}
	}
	b.timer.Stop()
	for _, b := range []*beats{{attempt: b.attempt}, {attempt: b.attempt, pending: true, sending: true}, {attempt: b.attempt, pending: true, stopped: true}} {
		if err := b.send(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A function that has returned beats no more, whatever is still under way: nothing that was said before ends what is closed.
func TestBeatsThatHaveStopped(t *testing.T) {
	for _, why := range []error{nil, ErrCanceled, ErrGone} {
		var causes []error
		b := &beats{
			attempt: &attempt{delivery: &delivery{term: &term{Worker: &Worker{log: logrus.New()}}}},
			err:     why,
			cancel:  func(err error) { causes = append(causes, err) },
		}
		b.stop()
		b.told(&schemas.Control{Reason: "too late"})
		b.told(&schemas.Control{Reason: "too late", Gone: true})
		if err := b.beat(t.Context(), nil); !errors.Is(err, why) || b.pending || b.timer != nil {
			t.Errorf("%v: got %v, pending: %v", why, err, b.pending)
		}
		if len(causes) != 0 {
			t.Errorf("%v: its context was ended by %v", why, causes)
		}
	}
}
