package recycle

import (
	"fmt"
	"strings"
	"time"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const (
	// lostAfter is how long a recycle waits for the return of a node that has begun its turn and is
	// not heard of.
	lostAfter = 10 * time.Minute
	// givenUp is how long nothing may happen in a recycle before it counts as over.
	givenUp = time.Hour
	// settled is how long the last return is left alone before the recycle is over: the notice of
	// it is to come first.
	settled = 200 * time.Millisecond
	// idleLook and busyLook are how long the keeper waits at most, without a recycle and in one.
	idleLook = time.Minute
	busyLook = 2 * time.Second
)

// member is a live node of the deployment.
type member struct {
	name  string
	since time.Time // its roles began
}

// stale are the names of those whose roles began before a slot.
func stale(members []member, slot time.Time) (names []string) {
	for _, m := range members {
		if m.since.Before(slot) {
			names = append(names, m.name)
		}
	}
	return names
}

// goesOn tells whether a recycle is announced or under way.
func goesOn(s *ops.RecycleNotice) bool { return s != nil && s.Phase != ops.RecycleFinished }

// step says what is to be said now by the master, if anything, and after which time to look again
// at the latest.
func (p *plan) step(
	state *ops.RecycleNotice, members []member, now time.Time,
) (say *ops.RecycleNotice, wait time.Duration) {
	told := time.Time{} // the slot that was announced last
	if state != nil {
		told = state.Slot.Time()
	}
	wait = idleLook
	if goesOn(state) {
		wait = busyLook
	}
	// One that has begun comes to its end before the next is announced, which has then a shorter
	// notice.
	begun := goesOn(state) && (state.Phase != ops.RecycleAnnounced || !now.Before(state.At.Time()))
	if slot := p.next(now); !begun && slot.After(told) {
		asked := p.set.Asked != 0 && slot.Equal(p.set.Asked.Time())
		if left := slot.Add(-p.notice()).Sub(now); left > 0 && !asked {
			wait = min(wait, left)
		} else {
			return &ops.RecycleNotice{
				Phase: ops.RecycleAnnounced, Slot: schemas.At(slot),
				At: schemas.At(slot),
			}, wait
		}
	}
	if slot := p.last(now); !begun && slot.After(told) && len(stale(members, slot)) > 0 {
		return &ops.RecycleNotice{
			Phase: ops.RecycleAnnounced, Slot: schemas.At(slot),
			At:     schemas.At(now.Add(p.notice())),
			Reason: "late: there was no master to announce it in time",
		}, wait
	}
	if !goesOn(state) {
		return nil, wait
	}
	if left := settled - now.Sub(state.At.Time()); left > 0 && state.Phase == ops.RecycleReturned {
		return nil, min(wait, left)
	}
	if over, reason := ended(state, members, now); over {
		return &ops.RecycleNotice{
			Phase:  ops.RecycleFinished,
			Slot:   state.Slot,
			At:     schemas.At(now),
			Reason: reason,
		}, wait
	}
	return nil, wait
}

// ended tells whether a recycle that goes on is over, and why, unless all nodes have had their
// turns.
func ended(state *ops.RecycleNotice, members []member, now time.Time) (over bool, reason string) {
	since := now.Sub(state.At.Time())
	left := stale(members, state.Slot.Time())
	switch {
	case since > givenUp:
		if len(left) == 0 {
			return true, ""
		}
		return true, fmt.Sprintf("given up: without a turn are %s", strings.Join(left, ", "))
	case state.Phase == ops.RecycleAnnounced:
		return since >= 0 && len(left) == 0, ""
	case state.Phase == ops.RecycleDraining, state.Phase == ops.RecycleExited:
		return since > lostAfter && len(left) == 0, fmt.Sprintf("node %s has not returned",
			state.Node)
	}
	return len(left) == 0, ""
}

// act is what a node does about a recycle.
type act uint8

const (
	rest act = iota // nothing
	// say that it has returned from its turn: it did not come to that, or its process was started
	// again
	resume
	enter // wait for its turn, and have it
)

// turn says what a node does now, and for rest after which time to look again at the latest.
func turn(state *ops.RecycleNotice, self member, now time.Time) (act, time.Duration) {
	if !goesOn(state) {
		return rest, nodeLook
	}
	left := self.since.Before(state.Slot.Time())
	switch {
	case !left && state.Node == self.name &&
		(state.Phase == ops.RecycleDraining || state.Phase == ops.RecycleExited):
		return resume, 0
	case !left:
		return rest, nodeLook
	case state.Phase == ops.RecycleAnnounced && now.Before(state.At.Time()):
		return rest, min(nodeLook, state.At.Time().Sub(now))
	}
	return enter, 0
}

// mayBegin is how long a node that has the claim waits until it begins its turn.
func mayBegin(
	state *ops.RecycleNotice, self string, stagger time.Duration, now time.Time,
) time.Duration {
	if state.Phase == ops.RecycleAnnounced || state.Node == self {
		return 0
	}
	return state.At.Time().Add(stagger).Sub(now)
}
