package recycle

import (
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

var (
	slot    = time.Date(2026, 3, 2, 3, 30, 0, 0, time.UTC)
	earlier = slot.Add(-time.Hour)
)

func notice(phase ops.RecyclePhase, node string, at time.Time) *ops.RecycleNotice {
	return &ops.RecycleNotice{Phase: phase, Node: node, Slot: schemas.At(slot), At: schemas.At(at)}
}

// What the master says, by what was said last, since when the roles of nodes run, and the time.
func TestStep(t *testing.T) {
	daily := ops.Recycle{At: "03:30", UpdatedAt: schemas.At(slot.Add(-100 * time.Hour))}
	asked := ops.Recycle{Asked: schemas.At(slot)}
	old, fresh := member{"a", earlier}, member{"b", slot}
	nextDay := func(d time.Duration) time.Time { return slot.Add(24*time.Hour - d) }
	for name, tc := range map[string]struct {
		set     ops.Recycle
		state   *ops.RecycleNotice
		members []member
		now     time.Time
		want    ops.RecyclePhase
		at      time.Time
	}{
		"nothing is due":                {set: daily, members: []member{fresh}, now: earlier},
		"the notice":                    {set: daily, members: []member{old}, now: slot.Add(-10 * time.Minute), want: ops.RecycleAnnounced, at: slot},
		"announced once":                {set: daily, state: notice(ops.RecycleAnnounced, "", slot), members: []member{old}, now: slot.Add(-9 * time.Minute)},
		"asked for":                     {set: asked, members: []member{old}, now: earlier, want: ops.RecycleAnnounced, at: slot},
		"no master at the time":         {set: daily, members: []member{old, fresh}, now: slot.Add(time.Hour), want: ops.RecycleAnnounced, at: slot.Add(time.Hour + 10*time.Minute)},
		"no master, and all were anew":  {set: daily, members: []member{fresh}, now: slot.Add(time.Hour)},
		"one is left":                   {set: daily, state: notice(ops.RecycleReturned, "b", slot), members: []member{old, fresh}, now: slot.Add(time.Minute)},
		"all had their turns":           {set: daily, state: notice(ops.RecycleReturned, "b", slot), members: []member{fresh}, now: slot.Add(time.Minute), want: ops.RecycleFinished},
		"the last one just returned":    {set: daily, state: notice(ops.RecycleReturned, "b", slot), members: []member{fresh}, now: slot.Add(time.Millisecond)},
		"one drains":                    {set: daily, state: notice(ops.RecycleDraining, "a", slot), members: []member{fresh}, now: slot.Add(9 * time.Minute)},
		"it has not come back":          {set: daily, state: notice(ops.RecycleExited, "a", slot), members: []member{fresh}, now: slot.Add(11 * time.Minute), want: ops.RecycleFinished},
		"it drains, and others are due": {set: daily, state: notice(ops.RecycleDraining, "a", slot), members: []member{old, fresh}, now: slot.Add(11 * time.Minute)},
		"given up":                      {set: daily, state: notice(ops.RecycleReturned, "b", slot), members: []member{old, fresh}, now: slot.Add(2 * time.Hour), want: ops.RecycleFinished},
		"over":                          {set: daily, state: notice(ops.RecycleFinished, "", slot), members: []member{old, fresh}, now: slot.Add(2 * time.Hour)},
		"the next day":                  {set: daily, state: notice(ops.RecycleFinished, "", slot), members: []member{fresh}, now: nextDay(time.Minute), want: ops.RecycleAnnounced, at: nextDay(0)},
		"another one still goes on":     {set: daily, state: notice(ops.RecycleReturned, "b", nextDay(6*time.Minute)), members: []member{old}, now: nextDay(5 * time.Minute)},
		"never, and one is announced":   {state: notice(ops.RecycleAnnounced, "", slot), members: []member{old}, now: earlier},
	} {
		got, wait := compiled(t, tc.set).step(tc.state, tc.members, tc.now)
		switch {
		case got == nil && tc.want != "" || got != nil && got.Phase != tc.want:
			t.Errorf("%s: got %+v, want %q", name, got, tc.want)
		case !tc.at.IsZero() && !got.At.Time().Equal(tc.at):
			t.Errorf("%s: it begins at %v, want %v", name, got.At.Time(), tc.at)
		case wait <= 0:
			t.Errorf("%s: it looks again after %v", name, wait)
		}
	}
}

// A node has one turn in a recycle, under the claim, not before it begins, and a stagger after the one before.
func TestTurn(t *testing.T) {
	old, fresh := member{"a", earlier}, member{"a", slot}
	for name, tc := range map[string]struct {
		state *ops.RecycleNotice
		self  member
		now   time.Time
		want  act
	}{
		"no recycle":             {nil, old, slot, rest},
		"over":                   {notice(ops.RecycleFinished, "", slot), old, slot, rest},
		"announced":              {notice(ops.RecycleAnnounced, "", slot), old, slot.Add(-time.Second), rest},
		"due":                    {notice(ops.RecycleAnnounced, "", slot), old, slot, enter},
		"another's turn":         {notice(ops.RecycleDraining, "b", slot), old, slot, enter},
		"started anew meanwhile": {notice(ops.RecycleAnnounced, "", slot), fresh, slot, rest},
		"not said yet":           {notice(ops.RecycleDraining, "a", slot), fresh, slot, resume},
		"its process was ended":  {notice(ops.RecycleExited, "a", slot), fresh, slot, resume},
		"it died in its turn":    {notice(ops.RecycleDraining, "a", slot), old, slot, enter},
		"it has returned":        {notice(ops.RecycleReturned, "a", slot), fresh, slot, rest},
	} {
		if got, _ := turn(tc.state, tc.self, tc.now); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
	for name, tc := range map[string]struct {
		state *ops.RecycleNotice
		want  time.Duration
	}{
		"the first":         {notice(ops.RecycleAnnounced, "", slot), 0},
		"the second":        {notice(ops.RecycleReturned, "b", slot), time.Minute},
		"after one died":    {notice(ops.RecycleDraining, "b", slot), time.Minute},
		"again, after that": {notice(ops.RecycleDraining, "a", slot), 0},
	} {
		if got := mayBegin(tc.state, "a", 2*time.Minute, slot.Add(time.Minute)); got != tc.want {
			t.Errorf("%s: it waits for %v, want %v", name, got, tc.want)
		}
	}
}
