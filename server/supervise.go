package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// failureTimeout bounds the stop of the other roles when one has failed.
	failureTimeout = 15 * time.Second
	// readyTimeout bounds how long a server of its own waits for its partitions before it calls
	// itself ready: a large backlog is worked off after the ready line.
	readyTimeout = 5 * time.Second
)

// Reasons for the end of a server, as causes of its context.
var (
	// ErrCutShort says that Options.Hurry has ended a stop before the roles had ended.
	ErrCutShort = errors.New("the stop was cut short")
	errSlowStop = errors.New("the roles did not stop in time")
)

// runner is what every role is.
type runner interface {
	Run(ctx context.Context) error
}

// runnerFunc is a function as a runner.
type runnerFunc func(ctx context.Context) error

func (f runnerFunc) Run(ctx context.Context) error { return f(ctx) }

// supervise runs the parts of a node until ctx is done or one of them ends, then waits for the
// others.
func (n *node) supervise(ctx context.Context, parts map[string]runner) error {
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg sync.WaitGroup
	for name, r := range parts {
		wg.Go(func() {
			if err := r.Run(work); err != nil && work.Err() == nil {
				stop(fmt.Errorf("%s: %w", name, err))
			} else if work.Err() == nil {
				stop(fmt.Errorf("%s: %w", name, errRoleEnded))
			}
		})
	}
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()

	<-work.Done()
	failure, most := context.Cause(work), min(failureTimeout, n.drainLimit())
	if ctx.Err() != nil {
		failure, most = nil, n.drainLimit()
		n.draining(ctx)
	}
	if n.unwritable() {
		most = min(most, brokenStop)
	}
	limit := time.NewTimer(most)
	defer limit.Stop()
	select {
	case <-ended:
	case <-n.o.Hurry:
		failure = cmp.Or(failure, ErrCutShort)
	case <-limit.C:
		failure = cmp.Or(failure, fmt.Errorf("%w: %v", errSlowStop, most))
	}
	return failure
}
