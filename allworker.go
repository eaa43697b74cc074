package drover

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider"
)

// Worker answers for workflows and works on activities, on the client's connection:
//
//	w := client.Worker(nil)
//	workflow.Implement(w, shop.Process, process, nil)
//	activity.Implement(w, shop.Charge, charge)
//	err := w.Run(ctx)
//
// What it does is what a [decider.Worker] and an [activity.Worker] do; use these for other options
// or processes.
type Worker struct {
	deciders   *decider.Worker
	activities *activity.Worker
	decides    bool
}

// WorkerOptions of a [Worker]. The zero value is usable.
type WorkerOptions struct {
	// Lists are the task lists to take activities from. Defaults to [contract.DefaultList].
	Lists []string
	// Concurrency is how many activities run at once. Defaults to that of [activity.Options].
	Concurrency int
}

// Worker returns a worker on the client's connection. Implement workflows and activities with it,
// then call its Run.
func (c *Client) Worker(o *WorkerOptions) *Worker {
	if o == nil {
		o = &WorkerOptions{}
	}
	lists := o.Lists
	if len(lists) == 0 {
		lists = []string{contract.DefaultList}
	}
	return &Worker{
		deciders:   c.Deciders(nil),
		activities: c.Activities(&activity.Options{Lists: lists, Concurrency: o.Concurrency}),
	}
}

// Register implements [workflow.Registry]; it takes a raw decider, too.
func (w *Worker) Register(workflowType string, d decider.Decider) {
	w.decides = true
	w.deciders.Register(workflowType, d)
}

// DeciderWorker is the part that answers for workflows.
func (w *Worker) DeciderWorker() *decider.Worker { return w.deciders }

// Polls tells whether the worker asks for work all the time, as one of activities does.
func (w *Worker) Polls() bool { return len(w.activities.Types()) > 0 }

// Logger is what the worker writes to, and [workflow.Log] too.
func (w *Worker) Logger() logrus.FieldLogger { return w.deciders.Logger() }

// ActivityWorker implements [activity.Registry].
func (w *Worker) ActivityWorker() *activity.Worker { return w.activities }

// Run works until ctx is done, or the process is told to stop by SIGTERM or an interrupt. Then it
// takes nothing more, and lets what runs come to its end, as its workers do. It returns nil if all
// of that has ended well. If one of the two cannot go on, the other stops as well.
func (w *Worker) Run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	works := len(w.activities.Types()) > 0
	if !works && !w.decides {
		return errors.New("the worker has nothing to do: implement a workflow or an activity first")
	}
	var all sync.WaitGroup
	var decided, worked error
	if w.decides {
		all.Go(func() {
			defer stop()
			decided = w.deciders.Run(ctx)
		})
	}
	if works {
		all.Go(func() {
			defer stop()
			worked = w.activities.Run(ctx)
		})
	}
	all.Wait()
	return errors.Join(decided, worked)
}
