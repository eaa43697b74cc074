package load

import (
	"fmt"
	"strings"
	"time"

	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
)

// Contracts of the load for those who write it as workflow code.
var (
	Load   = contract.Workflow[Input, string](Type, poke)
	square = contract.Activity[int, int]("square", contract.List(List))
	poke   = contract.Signal[string](Poke)
)

// Code is what [Decide] decides, as workflow code.
func Code(ctx workflow.Context, in Input) (string, error) {
	var opts []contract.Option
	if in.Once {
		opts = append(opts, contract.NotIdempotent())
	}
	var done strings.Builder
	for i := range in.Steps {
		out, err := workflow.Call(ctx, square, i+1, opts...)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&done, "%d;", out)
		if i == 0 && in.Timer > 0 {
			err := workflow.Sleep(ctx, time.Duration(in.Timer)*time.Millisecond)
			if err != nil {
				return "", err
			}
		}
	}
	pokes := workflow.Signals(ctx, poke)
	for range in.Signals {
		if _, err := pokes.Receive(ctx); err != nil {
			return "", err
		}
	}
	return done.String(), nil
}
