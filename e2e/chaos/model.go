package chaos

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// A state of a model is a string, so that states compare by ==.

// lists is the model of appends to one run: the values in the order in which they took effect. Only
// Final reads are operations of it: a signal is acknowledged when it is stored, which is before it
// is in the history. What Peek saw is judged by [prefixes].
var lists = porcupine.NondeterministicModel{
	Init: func() []any { return []any{""} },
	Step: func(state, input, _ any) []any {
		s, o := state.(string), input.(Op)
		if o.Kind == Final {
			return when(s == strings.Join(o.Values, "\n"), s)
		}
		return outcome(o, s, join(s, o.Arg))
	},
	Equal: equal, DescribeOperation: describe, DescribeState: show,
}

// flags is the model of a flag with a log: compare-and-set, and reads that see everything that was
// acknowledged. The state is "+" or "-" and the log after it.
var flags = porcupine.NondeterministicModel{
	Init: func() []any { return []any{"-"} },
	Step: func(state, input, _ any) []any {
		s, o := state.(string), input.(Op)
		up, log := s[0] == '+', s[1:]
		want, other := o.Kind == Set, "-"
		if want {
			other = "+"
		}
		switch {
		case o.Kind == Log:
			return when(log == strings.Join(o.Values, "\n"), s)
		case up == want: // nothing to do, which may be said either way
			return []any{s}
		default:
			return outcome(o, s, other+join(log, o.Arg))
		}
	},
	Equal: equal, DescribeOperation: describe, DescribeState: show,
}

// starts is the model of one workflow id: the state is the run that is open, empty if none is.
var starts = porcupine.NondeterministicModel{
	Init: func() []any { return []any{""} },
	Step: func(state, input, _ any) []any {
		s, o := state.(string), input.(Op)
		switch o.Kind {
		case Open:
			return when(s == o.Result, s)
		case End:
			if s != o.Arg { // it has closed or never was: nobody can close it now
				return when(o.Outcome != OK, s)
			}
			return outcome(o, s, "")
		}
		if o.Outcome == Failed || o.Outcome == OK && o.Result != o.Arg {
			return when(s == o.Result, s)
		}
		if s != "" {
			return when(o.Outcome == Unknown, s)
		}
		return outcome(o, s, o.Arg)
	},
	Equal: equal, DescribeOperation: describe, DescribeState: show,
}

// holder is a state of the model of one claim.
type holder struct {
	client int
	number uint64
}

// claimed is the model of one claim: numbers grow from holder to holder, and whoever uses it is the
// last who took it. That a claim ends by itself needs no operation: another takes it.
var claimed = porcupine.NondeterministicModel{
	Init: func() []any { return []any{holder{}} },
	Step: func(state, input, _ any) []any {
		s, o := state.(holder), input.(Op)
		if o.Kind == Take {
			if o.Outcome != OK { // its number is not known; a later holder proves whether it counts
				return []any{s}
			}
			return when(o.N > s.number, holder{o.Client, o.N})
		}
		return when(s == holder{o.Client, o.N}, s)
	},
	Equal: equal, DescribeOperation: describe, DescribeState: show,
}

// when is one state, or none if the operation is impossible.
func when(possible bool, s any) []any {
	if possible {
		return []any{s}
	}
	return nil
}

// outcome is after for an operation that happened, before for one that did not, and both for an
// unknown one. A refusal changes nothing and is possible in no state that would have let it happen.
func outcome(o Op, before, after any) []any {
	switch o.Outcome {
	case OK:
		return []any{after}
	case Failed:
		return nil
	default:
		return []any{before, after}
	}
}

func join(log, value string) string {
	if log == "" {
		return value
	}
	return log + "\n" + value
}

func equal(a, b any) bool { return a == b }

func describe(input, _ any) string { return input.(Op).String() }

func show(state any) string { return fmt.Sprintf("%v", state) }

// operation is what porcupine judges. An unknown operation may happen at any time after its call.
// So may one on a flag that took several tries: if the last one found nothing to do, an earlier one
// may still be on its way.
func operation(o Op) porcupine.Operation {
	if (o.Kind == Set || o.Kind == Reset) && o.N > 1 {
		o.Outcome = Unknown
	}
	end := o.Return
	if o.Outcome == Unknown {
		end = math.MaxInt64
	}
	return porcupine.Operation{ClientId: o.Client, Input: o, Call: o.Call, Return: end}
}

// prefixes checks what was seen of a list while it grew against what it became: each sight is its
// beginning, and sights of one client never shrink.
func prefixes(final []string, peeks []Op) error {
	longest := map[int]int{}
	for _, p := range peeks {
		if p.Outcome != OK {
			continue
		}
		if len(p.Values) > len(final) || !slices.Equal(p.Values, final[:len(p.Values)]) {
			return fmt.Errorf("client %d saw %v, and the history became %v",
				p.Client, p.Values, final)
		}
		if len(p.Values) < longest[p.Client] {
			return fmt.Errorf("client %d saw %d values, and later %d",
				p.Client, longest[p.Client], len(p.Values))
		}
		longest[p.Client] = len(p.Values)
	}
	return nil
}
