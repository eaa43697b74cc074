package timers

import (
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// What an owner says of rings that it was not asked for, or a second time, or once they were given up, changes nothing.
func TestOutcomeOfWhatWasNotAsked(t *testing.T) {
	s := newTerm(New(nil, nil), 0, nil)
	late := time.NewTimer(time.Hour)
	s.direct.inFlight = newInFlightWindow()
	s.direct.alarmBatches = map[uint64]*alarmBatch{1: {calls: map[uint64]call{5: {seq: 5}, 6: {seq: 6}}, sent: time.Now(), late: late}}
	s.flying = 2
	if s.outcome(2, &schemas.RingsAnswer{Refused: true}) {
		t.Error("rings that were given up are refused")
	}
	s.unanswered(2, time.Hour)
	s.outcome(1, &schemas.RingsAnswer{Done: []uint64{5, 5, 9}})
	if left := len(s.direct.alarmBatches[1].calls); s.flying != 1 || left != 1 || !s.direct.open() {
		t.Errorf("%d rings are under way, %d of them with the owner, want one; and the owner may be asked: %v", s.flying, left, s.direct.open())
	}
}
