// Package load is the work that the tests below e2e put on servers which they kill, freeze and cut
// off: one workflow type that has a bit of everything, many such workflows at once, the progress
// that they make, by which a test says when something is to happen, and what they complain about.
package load

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

const (
	// Type is the workflow type, and List the task list of its activities, which are of the type
	// "square".
	Type, List = "load", "load"
	// Poke is the name of the signals that a workflow waits for.
	Poke = "poke"
)

// Input is that of a workflow: so many activities one after the other, a timer after the first one,
// and so many signals to wait for before the end.
type Input struct {
	Steps   int    `json:"steps"`
	Timer   int    `json:"timer,omitempty"` // milliseconds; 0: none
	Signals int    `json:"signals,omitempty"`
	Once    bool   `json:"once,omitempty"` // the activities are not idempotent
	Pad     string `json:"pad,omitempty"`  // makes the input large
}

// Want is the result of a workflow that went well.
func (l Input) Want() string {
	var s strings.Builder
	for i := range l.Steps {
		s.WriteString(fmt.Sprintf("%d;", (i+1)*(i+1)))
	}
	return strconv.Quote(s.String())
}

// Decide is the decider.
func Decide(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
	v, err := task.View(ctx)
	if err != nil {
		return nil, err
	}
	input, err := task.Payload(ctx, v.Input())
	if err != nil {
		return nil, err
	}
	var in Input
	if err := input.Decode(&in); err != nil {
		return []schemas.Decision{decider.Fail("bad-input", err.Error())}, nil
	}
	var done strings.Builder
	for i := range in.Steps {
		id := fmt.Sprintf("step-%d", i+1)
		switch status, out, reason := v.Activity(id); {
		case status == 0:
			opts := []decider.ActivityOption{decider.List(List)}
			if in.Once {
				opts = append(opts, decider.NotIdempotent())
			}
			return []schemas.Decision{decider.Schedule(id, "square", i+1, opts...)}, nil
		case status == decider.ActivitySucceeded:
			done.WriteString(string(out) + ";")
		case status.Closed():
			return []schemas.Decision{decider.Fail(reason, nil)}, nil
		default:
			return nil, nil
		}
		if i == 0 && in.Timer > 0 {
			switch v.Timer("pause") {
			case 0:
				return []schemas.Decision{
					decider.Timer("pause", time.Duration(in.Timer)*time.Millisecond),
				}, nil
			case decider.TimerOpen:
				return nil, nil
			}
		}
	}
	if len(v.Signals(Poke)) < in.Signals {
		return nil, nil
	}
	return []schemas.Decision{decider.Complete(done.String())}, nil
}
