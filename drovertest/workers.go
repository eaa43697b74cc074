package drovertest

import (
	"context"

	"github.com/droverhq/drover/activity"
)

// Worker is what [Env.Go] runs: a *drover.Worker, a *decider.Worker, an *activity.Worker, or anything
// that ends with its ctx.
type Worker interface {
	Run(ctx context.Context) error
}

// Go runs workers until the test ends or stop is called, which waits for them to drain. A worker
// that ends by itself fails the test. Activity workers that run otherwise keep talking to the
// server, so that nothing can leap over time.
//
// The end of the test waits for activities that run then, up to the DrainTimeout of their worker,
// whose default is minutes: give workers a short one in the real time of [Start].
func (e *Env) Go(workers ...Worker) (stop func()) {
	e.envLock.enter()
	defer e.envLock.leave()
	var mine []*runningWorker
	for _, w := range workers {
		e.forget(w)
		s := &runningWorker{env: e, worker: w}
		s.begin()
		mine = append(mine, s)
	}
	e.runningWorkers = append(e.runningWorkers, mine...)
	return func() {
		e.envLock.enter()
		defer e.envLock.leave()
		for _, s := range mine {
			s.over = true
			s.end()
		}
	}
}

// runningWorker is a worker that runs, with pauses during a leap.
type runningWorker struct {
	env    *Env
	worker Worker
	over   bool // it is not to run again
	cancel context.CancelFunc
	done   chan struct{}
}

// pauses tells whether the worker must stop during a leap: one that pulls tasks would hear
// its consumer's heartbeats. Deciders are quiet, and keep what they know of their runs.
func (s *runningWorker) pauses() bool {
	_, pulls := s.worker.(*activity.Worker)
	if p, ok := s.worker.(interface{ Polls() bool }); ok && p.Polls() {
		// it asks again and again, as one for all or one of deployed flows does
		pulls = true
	}
	return pulls && !s.over
}

func (s *runningWorker) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.done = cancel, make(chan struct{})
	go func() {
		defer close(s.done)
		err := s.worker.Run(ctx)
		switch {
		case ctx.Err() == nil:
			s.env.t.Errorf("drovertest: worker %T ended by itself: %v", s.worker, err)
		case err != nil:
			s.env.log.WithError(err).Warnf("worker %T", s.worker)
		}
	}()
}

// end stops the worker and waits for it.
func (s *runningWorker) end() {
	s.cancel()
	<-s.done
}
