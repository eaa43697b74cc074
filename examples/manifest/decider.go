package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// state is all that the decider knows of a run. It travels in the decision context, so that no decision reads the
// history, however many files there are. For the same reason it does not grow with them.
type state struct {
	Request request `json:"request"`
	Step    string  `json:"step,omitempty"` // the activity type at work
	Names   string  `json:"names,omitempty"`
	Files   int     `json:"files"`
	Next    int     `json:"next"` // the first file that is not scheduled yet
	Open    int     `json:"open"` // activities that have not ended
	Bytes   int64   `json:"bytes"`
	Failed  string  `json:"failed,omitempty"`
}

// done is how many files have been hashed.
func (s *state) done() int {
	if s.Step == activityHash {
		return s.Next - s.Open
	}
	return s.Next
}

// decide folds what is new into the state and says what follows from it: list, then hash with at most Width files at a
// time, then write.
func decide(_ context.Context, t *decider.Task) ([]schemas.Decision, error) {
	var s state
	if err := t.Context().Decode(&s); err != nil {
		return nil, err
	}
	for _, e := range t.Events() {
		s.apply(e)
	}
	decisions := s.next()
	left, err := schemas.JSONPayload(&s)
	if err != nil {
		return nil, err
	}
	t.SetContext(left)
	return decisions, nil
}

// apply takes in one event. Each is in the window of exactly one decision that counts.
func (s *state) apply(e schemas.Event) {
	switch a := e.Attributes.(type) {
	case *schemas.WorkflowStarted:
		if err := a.Input.Decode(&s.Request); err != nil {
			s.fail("the input is no request: " + err.Error())
		} else if err := s.Request.validate(); err != nil {
			s.fail("the input: " + err.Error())
		}
	case *schemas.ActivitySuccess:
		s.Open--
		s.succeeded(a.Result)
	case *schemas.ActivityFailed:
		s.Open--
		s.fail(s.Step + ": " + a.Reason)
	case *schemas.ActivityTimedOut:
		s.Open--
		s.fail(s.Step + ": timeout " + string(a.TimeoutType))
	case *schemas.ActivityScheduleFailed:
		s.Open--
		s.fail(s.Step + ": refused: " + string(a.Cause))
	}
}

// succeeded knows what has ended by the step: only one kind of activity is open at a time.
func (s *state) succeeded(result schemas.Payload) {
	switch s.Step {
	case activityList:
		var l listing
		if err := result.Decode(&l); err != nil {
			s.fail("list: " + err.Error())
		}
		s.Names, s.Files = l.Names, l.Files
	case activityHash:
		var h hashed
		if err := result.Decode(&h); err != nil {
			s.fail("hash: " + err.Error())
		}
		s.Bytes += h.Bytes
	}
}

// fail keeps the first failure: the others often follow from it.
func (s *state) fail(why string) {
	if s.Failed == "" {
		s.Failed = strings.ToValidUTF8(why[:min(len(why), maxReason)], "")
	}
}

// maxReason bounds what a failure adds to the state.
const maxReason = 400

// next says what is to be done, and notes it. Asked again in the same state, it says what is still missing.
func (s *state) next() []schemas.Decision {
	r := &s.Request
	switch {
	case s.Failed != "" && s.Open > 0:
		return nil // let the others end, so that none reports to a closed run
	case s.Failed != "":
		return []schemas.Decision{decider.Fail(s.Failed, nil)}
	case s.Step == "":
		s.Step = activityList
		return []schemas.Decision{s.schedule(activityList, activityList, r)}
	case s.Step == activityList && s.Open == 0:
		s.Step = activityHash
	}
	if s.Step == activityHash {
		return s.hash()
	}
	if s.Step == activityWrite && s.Open == 0 {
		return []schemas.Decision{decider.Complete(summary{Manifest: r.Out, Files: s.Files, Bytes: s.Bytes})}
	}
	return nil
}

// hash keeps Width files open until none is left, then goes on to write.
func (s *state) hash() []schemas.Decision {
	r := &s.Request
	var decisions []schemas.Decision
	for ; s.Open < r.Width && s.Next < s.Files; s.Next++ {
		in := hashing{Dir: r.Dir, Scratch: r.Scratch, Names: s.Names, N: s.Next}
		decisions = append(decisions, s.schedule(fmt.Sprintf("%s-%d", activityHash, s.Next), activityHash, in))
	}
	if s.Open > 0 {
		return decisions
	}
	s.Step = activityWrite
	return []schemas.Decision{s.schedule(activityWrite, activityWrite, writing{Out: r.Out, Scratch: r.Scratch, Names: s.Names})}
}

// schedule counts an activity as open. What the disk refuses is tried again by the broker, without asking the decider.
func (s *state) schedule(id, typ string, in any) schemas.Decision {
	s.Open++
	return decider.Schedule(id, typ, in, decider.List(taskList),
		decider.StartToClose(time.Hour), decider.Heartbeat(30*time.Second),
		decider.Retry(schemas.RetryPolicy{InitialInterval: schemas.Seconds(0.2), MaximumAttempts: 3}))
}
