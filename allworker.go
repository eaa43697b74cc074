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
	client     *Client
	opts       WorkerOptions
	deciders   *decider.Worker
	activities *activity.Worker
}

// WorkerOptions of a [Worker]. The zero value is usable.
type WorkerOptions struct {
	// Lists are the task lists to take activities from. Defaults to [contract.DefaultList].
	Lists []string
	// Concurrency is how many activities run at once. Defaults to that of [activity.Options].
	Concurrency int
	// CheckOpen is how many open runs of each type of workflow code are replayed before the worker
	// answers for the type. A type whose code does not agree with one of them is not served: another
	// worker has to, with the code that has decided. Run logs what differs, and returns it as soon
	// as it has nothing else to do. Defaults to 0, none.
	CheckOpen int
	// ServeDiffering serves such a type all the same; what differs is logged. Decisions of runs that
	// do not agree fail. Defaults to false.
	ServeDiffering bool
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
		client: c, opts: *o, deciders: c.Deciders(nil),
		activities: c.Activities(&activity.Options{Lists: lists, Concurrency: o.Concurrency}),
	}
}

// Register implements [workflow.Registry]; it takes a raw decider, too.
func (w *Worker) Register(workflowType string, d decider.Decider) {
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
	if !works && len(w.deciders.Types()) == 0 {
		return errors.New("the worker has nothing to do: implement a workflow or an activity first")
	}
	deciders, refused, err := w.checked(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil // it was told to stop
		}
		return err
	}
	var all sync.WaitGroup
	var decided, worked error
	if len(deciders.Types()) > 0 {
		all.Go(func() {
			defer stop()
			decided = deciders.Run(ctx)
		})
	}
	if works {
		all.Go(func() {
			defer stop()
			worked = w.activities.Run(ctx)
		})
	}
	all.Wait()
	return errors.Join(refused, decided, worked)
}
