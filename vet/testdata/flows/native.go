// Package flows has workflow code with one mistake a line, and what looks like one beside it.
package flows

import (
	"sync"
	"time"

	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
)

var charge = contract.Activity[string, int]("charge")

func goroutines(ctx workflow.Context) error {
	go func() { _ = time.Now() }() // want `a goroutine in workflow code: use workflow.Go`
	f := workflow.Go(ctx, func(ctx workflow.Context) (int, error) {
		go work() // want `a goroutine`
		return workflow.Call(ctx, charge, "x")
	})
	_, err := f.Get(ctx)
	return err
}

func work() {}

func channels(ctx workflow.Context, in chan string, out chan<- string) {
	<-in           // want `a receive from a channel in workflow code: use workflow.Signals`
	v := <-in      // want `a receive from a channel`
	out <- v       // want `a send to a channel`
	_ = len(in)    // does not wait
	for range in { // want `a range over a channel`
	}
	select { // want `select in workflow code: use workflow.Signals, workflow.NewChannel and workflow.Select`
	case <-in:
	case out <- v:
	default:
	}
	for range 3 {
	}
}

func waits(ctx workflow.Context, group *sync.WaitGroup, c *sync.Cond) {
	group.Wait() // want `sync.WaitGroup.Wait in workflow code: wait for futures of workflow.Go, or use workflow.WaitFor`
	c.Wait()     // want `sync.Cond.Wait`
	var mu struct{ sync.Mutex }
	mu.Lock() // want `sync.Mutex.Lock in workflow code: one coroutine of a run runs at a time`
	var once sync.Once
	once.Do(work) // want `sync.Once.Do`
}

// Methods of a type that has the context are workflow code, too.
type flow struct{ ctx workflow.Context }

func (f *flow) step() {
	go work() // want `a goroutine`
}

// What takes no context of a workflow may do as it likes, as long as no workflow calls it.
func activity(in chan string) string { // want activity:"a goroutine at native.go:[0-9]+"
	go work()
	return <-in
}
