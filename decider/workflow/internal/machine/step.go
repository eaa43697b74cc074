package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/droverhq/drover/decider/workflow/internal/coroutine"
	"github.com/droverhq/drover/decider/workflow/internal/match"
	"github.com/droverhq/drover/schemas"
)

// Step is work that is done in the worker itself. What comes of it is a marker of the history.
type Step struct {
	Of string // its name in the code
	// Quick has it done at once, in the coroutine and in the turn that asks.
	Quick bool
	// Do does it. The name is that of its markers, the same for all attempts. An error is a mistake
	// of the program and fails the decision.
	Do func(ctx context.Context, name string) (*Record, error)

	name string
}

// Record is what a marker has of a step. One of the first three is there.
type Record struct {
	OK       json.RawMessage `json:"ok,omitempty"`       // what it has returned
	Fault    string          `json:"fault,omitempty"`    // why it failed
	Canceled bool            `json:"canceled,omitempty"` // it ended since its scope was canceled
	// Details come with a fault. Retry is the pause before another attempt; without one this is the
	// end.
	Details schemas.Payload  `json:"details,omitempty"`
	Retry   schemas.Duration `json:"retry,omitempty"`
	// Quick: its turn has seen it.
	Quick bool `json:"quick,omitempty"`
}

func (r *Record) outcome() Outcome {
	o := Outcome{Kind: Succeeded, Result: schemas.Payload(r.OK), Retry: r.Retry}
	switch {
	case r.Canceled:
		o.Kind = Canceled
	case r.Fault != "":
		o.Kind, o.Reason, o.Details = Failed, r.Fault, r.Details
	}
	return o
}

var (
	errTooLong = fmt.Errorf("it has taken longer than %v, the time of a step: use an activity",
		stepLimit)
	errNotQuick = errors.New("it has taken longer than the time of a quick step: leave Quick out")
)

// Do asks for a step. Its future is ready once the history has the marker of what came of it. The
// same step may be asked for again then: that is its next attempt.
func (m *Machine) Do(s *Scope, of *Step) *Future {
	c, err := m.Enter("workflow.Do")
	if f := notAsked(s, of.Of, err); f != nil {
		return f
	}
	if of.name == "" {
		of.name = m.name(c, of.Of)
	}
	f := &Future{Name: of.name}
	if of.Quick {
		if r := m.quick(of); r != nil {
			f.settle(r.outcome())
			return f
		}
	}
	o := &openStep{Step: of, f: f}
	m.steps.open = append(m.steps.open, o)
	s.enter(f)
	f.cancel = o.cancel
	return f
}

// quick does a step in the turn that asks. It returns nil for one that is, or was, done as an
// ordinary one.
func (m *Machine) quick(of *Step) *Record {
	if !m.Live() {
		details, _ := m.recorded(of.name)
		if r, err := readRecord(details); err == nil && r.Quick {
			m.ask(&schemas.RecordMarker{MarkerName: of.name, Details: details})
			return r
		}
		return nil
	}
	if m.steps.live.NoSteps || m.steps.quick >= m.steps.live.Quick {
		return nil
	}
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(m.steps.live.Context, 2*m.steps.live.Quick, errNotQuick)
	defer cancel()
	r, err := of.Do(ctx, of.name)
	m.steps.quick += time.Since(began)
	if err != nil {
		panic(err.Error())
	}
	r = endedBy(ctx, r)
	r.Quick = true
	m.ask(r.marker(of.name))
	return r
}

// endedBy returns what is recorded of a step that may have failed since its time was over.
func endedBy(ctx context.Context, r *Record) *Record {
	cause := context.Cause(ctx)
	if r.Fault != "" && (errors.Is(cause, errTooLong) || errors.Is(cause, errNotQuick)) {
		return &Record{Fault: cause.Error()}
	}
	return r
}

func (r *Record) marker(name string) *schemas.RecordMarker {
	p, err := json.Marshal(r)
	if err != nil { // OK is JSON, and a payload can always be encoded
		panic(err)
	}
	return &schemas.RecordMarker{MarkerName: name, Details: p}
}

func readRecord(details schemas.Payload) (*Record, error) {
	r := &Record{}
	if err := json.Unmarshal(details, r); err != nil {
		return nil, err
	}
	if r.OK == nil && r.Fault == "" && !r.Canceled {
		return nil, errors.New("it says neither ok nor fault nor canceled")
	}
	return r, nil
}

// endStep settles a step by its marker.
func (m *Machine) endStep(name string, details schemas.Payload) {
	if m.steps.find(name) == nil {
		return // of a quick step, of a side effect or of a change
	}
	r, err := readRecord(details)
	if err != nil {
		m.mismatch = fmt.Errorf("the marker %s is no record of a step: %w", name, err)
		return
	}
	m.settleStep(name, r.outcome())
}

func (m *Machine) settleStep(name string, o Outcome) {
	if s := m.steps.find(name); s != nil {
		m.steps.open = slices.DeleteFunc(m.steps.open, func(x *openStep) bool { return x == s })
		s.f.settle(o)
	}
}

// replaySteps asks for the markers that the decision of the turn has of open steps. What came of
// them is delivered with their events, in the next turn.
func (m *Machine) replaySteps() {
	for _, e := range m.turn.Block {
		name := ""
		switch a := e.Attributes.(type) {
		case *schemas.Marker:
			name = a.MarkerName
		case *schemas.MarkerFailed:
			name = a.MarkerName
		}
		if m.steps.find(name) != nil {
			m.asks = append(m.asks,
				match.Ask{Decision: schemas.Decide(&schemas.RecordMarker{MarkerName: name})})
		}
	}
}

// beside adds to a difference what the code waits for that is no decision.
func (m *Machine) beside(diff error) error {
	for _, s := range m.steps.open {
		diff = fmt.Errorf("%w\n    the code waits for its step %s", diff, s.name)
	}
	return diff
}

// stepPanic is the error of a step that panics.
func stepPanic(name string, v any) error { return coroutine.Panic("of the step "+name, v) }
