package execution

import (
	"slices"

	"github.com/droverhq/drover/schemas"
)

// rememberedPoints bounds ReplayPoints: a loop that sets one at each turn must not make the
// snapshot grow without end. The oldest are forgotten; the history has them all.
const rememberedPoints = 1000

func (s *State) applyReplayPoint(e schemas.Event) bool {
	switch a := e.Attributes.(type) {
	case *schemas.ReplayPointSet:
		points := s.ReplayPoints
		if a.Only {
			points = nil
		}
		points = slices.DeleteFunc(slices.Clone(points), func(p schemas.ReplayPoint) bool { return p.Name == a.Name })
		points = append(points, schemas.ReplayPoint{Name: a.Name, EventID: e.ID, Time: e.Time})
		s.ReplayPoints = points[max(0, len(points)-rememberedPoints):]
	case *schemas.ReplayPointsReset:
		s.ReplayPoints = nil
	default:
		return false
	}
	return true
}

// setReplayPoint refuses with the event of a marker: a replay point is one that has a meaning.
func (st *step) setReplayPoint(a *schemas.SetReplayPoint, completed int64) bool {
	refuse := func(cause schemas.Cause, details string) bool {
		st.emit(&schemas.MarkerFailed{
			MarkerName: a.Name, Cause: cause, Details: "replay point: " + details,
			DeciderCompletedEventID: completed,
		})
		return false
	}
	if err := schemas.ValidateID("name", a.Name); err != nil {
		return refuse(schemas.CauseInvalidAttributes, err.Error())
	}
	if st.full() {
		return refuse(schemas.CauseEventLimitExceeded, st.fullDetails())
	}
	st.emit(&schemas.ReplayPointSet{
		Name: a.Name, State: a.State, Only: a.Only, DeciderCompletedEventID: completed,
	})
	return true
}
