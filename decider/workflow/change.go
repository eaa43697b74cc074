package workflow

import (
	"encoding/json"
	"fmt"

	"github.com/droverhq/drover/schemas"
)

// Changed tells whether the run takes the new way of a change of the code:
//
//	if workflow.Changed(ctx, "fraud-check") {
//		_, err = workflow.Call(ctx, FraudCheck, o)
//	}
//
// A run that has come by here before the change takes the old way, all others the new one. The
// first call in a run decides for all of it. Once no run needs the old way, the call can be deleted
// with it.
func Changed(ctx Context, id string) bool { return ctx.run.m.Changed(id) }

// ChangedFrom is Changed that is decided anew at each call, until it is true: the next round of a
// loop takes the new way.
func ChangedFrom(ctx Context, id string) bool { return ctx.run.m.ChangedFrom(id) }

// Once returns what a function returns, and records it: a replay does not call it again. The
// function must not block, and do nothing that matters twice: [Do] is for that. The value
// must have a JSON form. The name is for whoever reads the history.
func Once[T any](ctx Context, name string, fn func() T) (v T) {
	p := ctx.run.m.Once(name, func() schemas.Payload {
		b, err := json.Marshal(fn())
		if err != nil {
			panic(fmt.Sprintf("Once %q: %T has no JSON form: %v", name, v, err))
		}
		return b
	})
	if err := json.Unmarshal(p, &v); err != nil {
		panic(fmt.Sprintf("Once %q: the history has %s, which is no %T: %v", name, p, v, err))
	}
	return v
}

// SetAttributes changes what lists and queries show of the run; "" takes an attribute away.
func SetAttributes(ctx Context, attributes map[string]string) {
	ctx.run.m.SetAttributes(attributes)
}
