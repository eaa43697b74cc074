package workflow_test

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/internal/typecheck"
)

// prelude has one contract of each kind, an activity and a workflow.
const prelude = `package code

import (
	"context"
	"net/http"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
)

type (
	Order   struct{ ID string }
	Receipt struct{ Number int }
)

var (
	Charge  = contract.Activity[Order, Receipt]("charge")
	Approve = contract.Signal[Order]("approve")
	Cancel  = contract.Signal[string]("cancel")
	Process = contract.Workflow[Order, Receipt]("order", Approve, Cancel)
)

func charge(ctx context.Context, o Order) (r Receipt, err error) { return r, err }

func process(ctx workflow.Context, o Order) (Receipt, error) { return workflow.Call(ctx, Charge, o) }

func worker(c *drover.Client) {
	w := c.Worker(nil)
	workflow.Implement(w, Process, process, nil)
	activity.Implement(w, Charge, charge)
}

var _, _ = http.NewRequestWithContext, time.Now

func try(ctx workflow.Context, native context.Context, c *drover.Client, run *drover.TypedRun[Receipt], o Order) {
	`

// What is not meant does not compile. sdk-go#1285 and #1932: nothing is untyped.
func TestMisuseDoesNotCompile(t *testing.T) {
	c := typecheck.New(t, "context", "net/http", "time", "github.com/droverhq/drover", "github.com/droverhq/drover/activity",
		"github.com/droverhq/drover/contract", "github.com/droverhq/drover/decider/workflow")
	const otherType, noType = "does not match inferred type", "does not match"
	const wrongUse = "cannot use"
	for _, tc := range []struct{ name, code, want string }{
		{"what is meant", `_, _ = workflow.Call(ctx, Charge, o)
			var r Receipt
			r, _ = workflow.Start(ctx, Process, o).Get(ctx)
			s, _ := workflow.Signals(ctx, Cancel).Receive(ctx)
			_ = drover.Signal(native, run.Run, Cancel, s)
			_ = r`, ""},

		{"an activity called directly", `charge(ctx, o)`, "does not implement context.Context"},
		{"a native context for a call", `workflow.Call(native, Charge, o)`, "cannot use native"},
		{"the context for net/http", `http.NewRequestWithContext(ctx, "", "", nil)`, "does not implement context.Context"},
		{"the context for context", `context.WithTimeout(ctx, time.Second)`, "does not implement context.Context"},
		{"the context for a client", `drover.Start(ctx, c, Process, o, nil)`, "does not implement context.Context"},
		{"waiting for the context", `<-ctx.Done()`, "ctx.Done undefined"},
		{"waiting for a future", `<-workflow.Start(ctx, Charge, o)`, "cannot receive"},

		{"another input", `workflow.Call(ctx, Charge, "x")`, wrongUse},
		{"another result", `var s string; s, _ = workflow.Call(ctx, Charge, o); _ = s`, wrongUse},
		{"the result of a future", `var s string; s, _ = workflow.Start(ctx, Charge, o).Get(ctx); _ = s`, wrongUse},
		{"a call by name", `workflow.Call(ctx, "charge", o)`, "cannot infer"},
		{"a call of a function", `workflow.Call(ctx, charge, o)`, noType},
		{"the item of Map", `workflow.Map(ctx, []string{"x"}, 0, process)`, noType},
		{"the next run", `workflow.ContinueAsNew(ctx, Process, "x")`, wrongUse},

		{"a signal of another type", `drover.Signal(native, run.Run, Cancel, o)`, otherType},
		{"what a signal has", `var s string; s, _ = workflow.Signals(ctx, Approve).Receive(ctx); _ = s`, wrongUse},
		{"a case of another signal", `workflow.Receive(workflow.Signals(ctx, Approve), func(string, error) {})`, noType},
		{"a case of another future", `workflow.On(workflow.Start(ctx, Charge, o), func(string, error) {})`, noType},
		{"a signal that is none", `workflow.Signals(ctx, Charge)`, noType},
		{"a start with another input", `drover.Start(native, c, Process, "x", nil)`, wrongUse},
		{"what a run returns", `var s string; s, _ = run.Result(native); _ = s`, wrongUse},

		{"a workflow as an activity", `activity.Implement(c.Worker(nil), Charge, process)`, noType},
		{"an activity as a workflow", `workflow.Implement(c.Worker(nil), Process, charge, nil)`, noType},
		{"a workflow of another input", `workflow.Implement(c.Worker(nil), Process, func(workflow.Context, string) (r Receipt, err error) { return }, nil)`, noType},
	} {
		got := c.Errors(t, prelude+tc.code+"\n}")
		if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)) {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}
