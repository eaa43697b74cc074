package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/decider/flow/value"
	"github.com/droverhq/drover/schemas"
)

// savedState is how this decider marks what it sends to itself: the input of a run that is not just
// given by its caller, and what a part of a flow hands to the run around it. It is the only key of
// its map.
const savedState = "$flow"

// origin is the input of a run that is a part of a flow, or repeats another run.
type origin struct {
	Version       string    `json:"version,omitempty"`
	Part          string    `json:"part,omitempty"`
	Input         run.Value `json:"input,omitzero"`
	Vars          run.Value `json:"vars,omitzero"`
	Reducing      []string  `json:"reducing,omitempty"`
	IdempotentAll bool      `json:"idempotent_all,omitempty"`
	Locked        bool      `json:"locked,omitempty"` // a run around it holds a lock
	Held          []string  `json:"held,omitempty"`   // see saved
	Replay        *replay   `json:"replay,omitempty"`
	Continue      *onward   `json:"continue,omitempty"`
}

type replay struct {
	State json.RawMessage `json:"state"`
	From  string          `json:"from"`
	Force bool            `json:"force,omitempty"`
}

// outcome is the result, or the details of the failure, of a part.
type outcome struct {
	Output  run.Value       `json:"output,omitzero"`
	Reduced run.Value       `json:"reduced,omitzero"`
	Failure *run.Failure    `json:"failure,omitempty"`
	State   json.RawMessage `json:"state,omitempty"`
}

func wrap(v any) (schemas.Payload, error) {
	data, err := json.Marshal(map[string]any{savedState: v})
	if err != nil {
		return nil, fmt.Errorf("flow: encode a message between its runs: %w", err)
	}
	return data, nil
}

// unwrap reads an envelope; it reports whether there is one.
func unwrap[T any](p schemas.Payload) (*T, bool) {
	if len(p) < len(savedState)+4 || p[0] != '{' {
		return nil, false
	}
	var outer map[string]json.RawMessage
	if json.Unmarshal(p, &outer) != nil || len(outer) != 1 || outer[savedState] == nil {
		return nil, false
	}
	v := new(T)
	if json.Unmarshal(outer[savedState], v) != nil {
		return nil, false // somebody's own data: what was wrapped can be read
	}
	return v, true
}

// saved is the decision context of a run.
type saved struct {
	Format  int             `json:"drover_flow"`
	Version string          `json:"version"`
	Part    string          `json:"part,omitempty"`
	State   json.RawMessage `json:"state"`
	// Locked says that a run around this one holds a lock.
	Locked bool `json:"locked,omitempty"`
	// Held are the keys of the locks that the run has taken by their state keys.
	Held []string `json:"held,omitempty"`
	// Open has the actions whose answer is to come, by the event that asked for them.
	Open map[int64]string `json:"open,omitempty"`
	// Asked are requests on state keys whose events are still to be seen, in their order.
	Asked []string `json:"asked,omitempty"`
	// Again are inputs that the state has not seen yet, because the run was to continue as new with
	// them and was refused that.
	Again []input `json:"again,omitempty"`
	// Defaults are those that the run was started with. Parts of it, which are runs of their own,
	// get them too.
	Defaults *schemas.ActivityDefaults `json:"defaults,omitempty"`
	// Due is when the timers that are armed fire, timeouts and that of the step that waits, for a
	// run that continues as new.
	Due map[string]schemas.Timestamp `json:"due,omitempty"`
	// Children are the workflow ids of children that do not follow from the action.
	Children map[string]string `json:"children,omitempty"`
}

const contextFormat = 1

// hold notes a lock that the run has taken by its state key.
func (s *saved) hold(scope, lock string) {
	if key := schemas.LockKey(scope, lock); !slices.Contains(s.Held, key) {
		s.Held = append(s.Held, key)
	}
}

// release forgets a lock that the run has no more.
func (s *saved) release(scope, lock string) {
	s.Held = slices.DeleteFunc(s.Held,
		func(key string) bool { return key == schemas.LockKey(scope, lock) })
}

// restore reads a decision context; nil if there is none.
func restore(p schemas.Payload) (*saved, error) {
	if len(p) == 0 {
		return nil, nil
	}
	s := &saved{}
	if err := json.Unmarshal(p, s); err != nil {
		return nil, fmt.Errorf("flow: the context of the run is no state of a flow: %w", err)
	}
	if s.Format != contextFormat {
		return nil, fmt.Errorf(
			"flow: the context of the run has format %d, want %d: let a worker of that release answer",
			s.Format, contextFormat)
	}
	return s, nil
}

// incoming makes a value of a payload: JSON if it is, else its text.
func incoming(p schemas.Payload) (any, error) {
	if len(p) == 0 {
		return nil, nil
	}
	if json.Valid(p) {
		return value.Decode(p, value.Limits{})
	}
	if !utf8.Valid(p) {
		return nil, errors.New(
			"the payload is neither JSON nor text: encode bytes, for example in base64")
	}
	return value.Of(string(p), value.Limits{})
}

// outgoing makes a payload of a value.
func outgoing(v any) (schemas.Payload, error) {
	if v == nil {
		return nil, nil
	}
	return value.Encode(v)
}
