package match

import (
	"bytes"
	"fmt"

	"github.com/droverhq/drover/schemas"
)

// CompareInputs compares what the asks of a turn give to others, and the result of the run, with
// what the events have that answer them. Code that was changed may give something else to what it
// asks for; the same code may not.
func CompareInputs(asks []Ask, block []schemas.Event) error {
	asked := make(map[key]Ask, len(asks))
	for _, a := range asks {
		asked[keyOfDecision(a.Decision)] = a
	}
	var lines []string
	for _, e := range block {
		had, ok := hadInput(e.Attributes)
		k, _ := keyOfEvent(e.Attributes)
		a, isAsked := asked[k]
		if !ok || !isAsked {
			continue
		}
		if gives := givenInput(a.Decision); !bytes.Equal(gives, had) {
			width := len(k.String())
			lines = append(lines, row("-", e.ID, width, k, "has "+clipped(had)),
				row("+", 0, width, k, fmt.Sprintf("%s gives %s", a.Line, clipped(gives))))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return &Error{Lines: lines}
}

// hadInput is what an event says that was given; ok is false if it says nothing of that.
func hadInput(a schemas.Attributes) (p schemas.Payload, ok bool) {
	switch a := a.(type) {
	case *schemas.ActivityScheduled:
		return a.Input, true
	case *schemas.ChildScheduled:
		return a.Input, true
	case *schemas.SignalExternalScheduled:
		return a.Input, true
	case *schemas.WorkflowSuccess:
		return a.Result, true
	}
	return nil, false
}

// givenInput is the same of a decision.
func givenInput(d schemas.Decision) schemas.Payload {
	switch a := d.Attributes.(type) {
	case *schemas.ScheduleActivity:
		return a.Input
	case *schemas.StartChild:
		return a.Input
	case *schemas.SignalExternal:
		return a.Input
	case *schemas.CompleteWorkflow:
		return a.Result
	}
	return nil
}

// mostShown is how many bytes of an input are shown.
const mostShown = 120

func clipped(p schemas.Payload) string {
	if len(p) > mostShown {
		return fmt.Sprintf("%q…", p[:mostShown])
	}
	if len(p) == 0 {
		return "nothing"
	}
	return string(p)
}
