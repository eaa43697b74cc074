package server

import (
	"context"
	"sync"
)

// runnerGroup are runners that are one role: they end together, with the first error.
type runnerGroup []runner

func (all runnerGroup) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex
	var first error
	var wg sync.WaitGroup
	for _, r := range all {
		wg.Go(func() {
			err := r.Run(ctx)
			mu.Lock()
			defer mu.Unlock()
			if ctx.Err() == nil && first == nil {
				first = err
			}
			stop(err)
		})
	}
	wg.Wait()
	return first
}
