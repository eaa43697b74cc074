package contract

import (
	"slices"

	"github.com/droverhq/drover/schemas"
)

// ActivityOf is the contract of an activity; see [Activity].
type ActivityOf[In, Out any] struct {
	call[In, Out]
	defaults []Option
}

// Activity declares the activity type of that name, 1 to [MaxNameLen] bytes. It takes an In and
// returns an Out. The options hold for every call that does not override them. Without [Retry] and
// [NoRetry], an attempt that fails or runs out of time is repeated without end, after a pause of
// 1 s that doubles up to 100 s: only a fault ends it.
//
// Activity panics on mistakes of the program.
func Activity[In, Out any](name string, defaults ...Option) *ActivityOf[In, Out] {
	a := &ActivityOf[In, Out]{
		call:     declare[In, Out](schemas.ActivityKind, name),
		defaults: slices.Clone(defaults),
	}
	must(a.of, contradictions(defaults))
	return a
}

// Schedule returns the decision that asks for the activity, under an id that no open activity of
// the run has. The options are applied after those of the contract, in their order, and the last
// one to set something counts.
//
// An error says which option cannot stand, or that the input cannot be encoded.
func (a *ActivityOf[In, Out]) Schedule(
	id string, in In, opts ...Option,
) (*schemas.ScheduleActivity, error) {
	input, err := a.EncodeInput(in)
	if err != nil {
		return nil, err
	}
	s, problem := scheduled(a.defaults, opts)
	if problem != "" {
		return nil, invalid(a.of, problem)
	}
	s.ActivityID, s.ActivityType, s.Input = id, a.name, input
	return s, nil
}
