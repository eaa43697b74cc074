package main

import (
	"errors"

	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
)

var (
	noop = contract.Activity[string, string]("noop", contract.List(benchList))
	// coded is what the raw decider does with activities, as workflow code.
	coded = contract.Workflow[job, string]("bench-code")
)

func code(ctx workflow.Context, j job) (string, error) {
	switch j.Kind {
	case "seq":
		for range j.N {
			if _, err := workflow.Call(ctx, noop, j.Payload); err != nil {
				return "", err
			}
		}
		return "done", nil
	case "fan":
		all := make([]workflow.Waitable, j.N)
		for i := range all {
			all[i] = workflow.Start(ctx, noop, j.Payload)
		}
		return "done", workflow.All(ctx, all...)
	}
	return "", errors.New("there is no workflow code for " + j.Kind)
}
