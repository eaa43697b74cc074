package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/droverhq/drover/decider/workflow/internal/machine"
	"github.com/droverhq/drover/schemas"
)

// envelope is the input of a run that continues another one and has signals from it:
//
//	{"$workflow":{"input":…,"signals":[{"name":"approve","value":…}]}}
type envelope struct {
	Workflow *carried `json:"$workflow"`
}

type carried struct {
	Input   schemas.Payload  `json:"input"`
	Signals []machine.Signal `json:"signals"`
}

// pack puts the signals that nobody has received beside the input of the next run.
func pack(m *machine.Machine, input schemas.Payload) schemas.Payload {
	left := m.Unreceived()
	if len(left) == 0 {
		return input
	}
	p, err := json.Marshal(envelope{&carried{Input: input, Signals: left}})
	if err != nil {
		panic(fmt.Sprintf("the signals that go on to the next run: %v", err))
	}
	return p
}

// unpack returns the input of a run, and gives its channels what the run before has left.
func unpack(m *machine.Machine, input schemas.Payload) (schemas.Payload, error) {
	if !bytes.HasPrefix(input, []byte(`{"$workflow":`)) {
		return input, nil
	}
	var e envelope
	if err := json.Unmarshal(input, &e); err != nil {
		return nil, fmt.Errorf("the input of a continued run: %w", err)
	}
	m.Receive(e.Workflow.Signals)
	return e.Workflow.Input, nil
}
