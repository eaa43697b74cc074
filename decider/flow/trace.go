package flow

import (
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/schemas"
)

// Trace is what a step of a run does, or a line of the run's log. Its values belong to the run:
// read them, never change them.
type Trace struct {
	Type string // the name of the flow
	Run  schemas.Execution
	// Part is the part of the flow that the run is; empty for the whole.
	Part string
	Step *model.Step
	Did  run.Did
	// Output is that of a step that has ended.
	Output any
	// Failure is that of a step that has failed.
	Failure *run.Failure
	// Log is a line of the log with its Level; Step is nil then.
	Log, Level string
}

// trace tells Options.Trace of a run; nil if nobody is to be told.
func (d *Decider) trace(t *decider.Task, p *machine.Program) run.Trace {
	if d.o.Trace == nil {
		return nil
	}
	return func(ref string, did run.Did, output any, f *run.Failure) {
		told := Trace{
			Type: t.Type(), Run: t.Execution(), Part: p.Key(), Step: p.Step(ref), Did: did,
			Output: output, Failure: f,
		}
		if line, ok := output.(machine.Action); ok && did == run.Logged {
			told.Output, told.Log, told.Level = nil, line.Text, line.Level
		}
		d.o.Trace(told)
	}
}
