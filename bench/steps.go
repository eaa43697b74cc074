package main

import (
	"context"

	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
)

// stepping is the workflow of N steps in a row ("do"), or of N quick ones ("quick").
var stepping = contract.Workflow[job, string]("bench-steps")

func steps(ctx workflow.Context, j job) (string, error) {
	var opts []workflow.StepOption
	if j.Kind == "quick" {
		opts = append(opts, workflow.Quick())
	}
	for range j.N {
		_, err := workflow.Do(ctx, "noop", func(context.Context) (string, error) { return j.Payload, nil }, opts...)
		if err != nil {
			return "", err
		}
	}
	return "done", nil
}

// typeOf is the workflow type that does a job: workflow code, or else the raw decider where that can.
func typeOf(j job, asCode bool) string {
	switch {
	case j.Kind == "do" || j.Kind == "quick":
		return stepping.Name()
	case asCode:
		return coded.Name()
	}
	return "bench"
}
