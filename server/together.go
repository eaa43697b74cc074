package server

import (
	"context"
	"sync"
)

// together are runners that are one role: they end together, with the first error.
type together []runner

func (all together) Run(ctx context.Context) error {
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
