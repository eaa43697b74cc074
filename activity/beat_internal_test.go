package activity

import (
	"errors"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/schemas"
)

// A function that has returned beats no more, whatever is still under way: nothing that was said before ends what is closed.
func TestBeatsThatHaveStopped(t *testing.T) {
	for _, why := range []error{nil, ErrCanceled, ErrGone} {
		var causes []error
		b := &beats{attempt: &attempt{delivery: &delivery{spell: &spell{Worker: &Worker{log: logrus.New()}}}}, err: why, cancel: func(err error) { causes = append(causes, err) }}
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
