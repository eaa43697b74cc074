package activity

import (
	"context"
	"io"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/internal/virtual"
)

// An offer whose handling has not begun at the end of a drain is forgotten: nothing of it has been read that could be given back, and its
// owner, which hears nothing, puts it on the list.
func TestOfferThatHasNotBegunAtTheEnd(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		log := logrus.New()
		log.SetOutput(io.Discard)
		s := &term{Worker: &Worker{log: log}, live: make(map[*delivery]*attempt), running: make(map[string]int)}
		d := &delivery{term: s, list: "main", offered: true}
		s.live[d] = nil
		s.wg.Add(1)
		_, cancel := context.WithCancelCause(t.Context())
		if err := s.drain(cancel, cancel); err != nil || s.returned.Load() != 0 {
			t.Errorf("got %v, and %d tasks that were handed back, want none", err, s.returned.Load())
		}
		if d.settle(acknowledge, 0) {
			t.Error("it can still be settled")
		}
		s.wg.Done()
	})
}
