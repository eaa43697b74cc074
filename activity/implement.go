package activity

import (
	"context"
	"fmt"

	"github.com/droverhq/drover/contract"
)

// Registry is where activities are implemented: a [Worker], or a drover.Worker.
type Registry interface{ ActivityWorker() *Worker }

// Implement makes a function the activity of a contract: as [Register] does, with the types of the
// contract. A fault that the function returns, wrapped or not, is final: no policy tries again, and
// the workflow that has called finds it by [errors.Is].
//
// Implement panics on mistakes of the program, as Register.
func Implement[In, Out any](
	r Registry, c *contract.ActivityOf[In, Out], fn func(ctx context.Context, in In) (Out, error),
) {
	if fn == nil {
		panic(fmt.Sprintf("activity: Implement(%q): the function is nil", c.Name()))
	}
	Register(r.ActivityWorker(), c.Name(), func(ctx context.Context, in In) (Out, error) {
		out, err := fn(ctx, in)
		if fault, ok := contract.AsFault(err); ok {
			return out, Final(Fail(fault.Reason, fault.Details))
		}
		return out, err
	})
}
