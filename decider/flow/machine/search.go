package machine

import "slices"

// The places that are no steps.
const (
	atStart = "start"
	atEnd   = "end"
	atLast  = "last"
)

// trail is what is recorded of the steps of a run: where it has been, and where it may go back to.
type trail struct {
	at        string // the step that runs, or ran last
	last      string // the replay point that was passed last; empty if there is none
	fromStart bool
	points    []string
	before    func(ref string) []string // recorded predecessors, the latest first
}

// isPoint tells whether a replay may begin at a place.
func (t *trail) isPoint(place string) bool {
	switch place {
	case atStart:
		return t.fromStart || t.last == atStart
	case atEnd:
		return true
	}
	return place == t.at && place == t.last || slices.Contains(t.points, place)
}

// nearest is the replay point that is reached first when one goes back from a place the way that
// the run came, which is not the order of the text. At a place that the search has been at before,
// it takes the one way that it has left aside; if there is none, or more than one, it gives up and
// goes to the start. There is no point if that is none.
func (t *trail) nearest(place string) (string, bool) {
	seen := map[string]bool{}
	var aside []string
	for !t.isPoint(place) {
		if place == atStart {
			return "", false
		}
		if seen[place] {
			left := slices.DeleteFunc(slices.Clone(aside), func(p string) bool { return seen[p] })
			place = atStart
			if len(left) == 1 {
				place = left[0]
			}
			continue
		}
		seen[place] = true
		before := t.before(place)
		if len(before) == 0 {
			place = atStart
			continue
		}
		place = before[0]
		for _, other := range before[1:] {
			if !slices.Contains(aside, other) {
				aside = append(aside, other)
			}
		}
	}
	return place, true
}
