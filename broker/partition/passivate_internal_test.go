package partition

import (
	"testing"

	"github.com/droverhq/drover/broker/partition/deadlines"
	"github.com/droverhq/drover/schemas"
)

// A run is parked only if all is known that must be: which record is its last, and that no alarm stands of which nothing is known. Of an
// alarm that is ringing nothing is kept, since its worker deletes it.
func TestWhatIsKeptOfAnAlarm(t *testing.T) { // P-10, I15
	for _, tc := range []struct {
		name   string
		change func(*run)
		alarm  uint64
		kept   bool
	}{
		{"armed", func(*run) {}, 7, true},
		{"ringing", func(r *run) { r.alarm.firing = true }, 0, true},
		{"strange", func(r *run) { r.alarm.strange = true }, 0, false},
		{"of a run without a record", func(r *run) { r.end.Sequence = 0 }, 0, false},
		{"of a run that has ended", func(r *run) { r.state.Status = schemas.StatusCompleted }, 0, false},
	} {
		p, r := &Partition{deadlines: deadlines.New[*run]()}, openRun()
		r.alarm = alarm{due: 100, seq: 7}
		tc.change(r)
		p.passivate(r)
		back := &run{wid: r.wid}
		p.activate(back)
		if (back.passive != nil) != tc.kept || tc.kept && back.passive.Alarm != tc.alarm {
			t.Errorf("an alarm %s: kept %+v, want one: %v, with alarm %d", tc.name, back.passive, tc.kept, tc.alarm)
		}
	}
}
