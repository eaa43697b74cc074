package flows

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/droverhq/drover/decider/workflow"
)

func results(ctx workflow.Context) error {
	workflow.Start(ctx, charge, "x")                                        // want `workflow.Start whose result is not used in workflow code: keep it and Get it, or nobody learns of its error`
	workflow.Go(ctx, func(workflow.Context) (int, error) { return 0, nil }) // want `workflow.Go whose result`
	workflow.Timer(ctx, 1)                                                  // want `workflow.Timer whose result`
	_ = workflow.Start(ctx, charge, "x")                                    // meant so
	if ctx.Err() != nil {
		workflow.ContinueAsNew(ctx, 1) // want `workflow.ContinueAsNew whose result is not used in workflow code: return what it returns`
	}
	return workflow.ContinueAsNew(ctx, 1)
}

func recovers(ctx workflow.Context) (err error) {
	defer func() {
		if r := recover(); r != nil { // want `recover in workflow code: a panic is a mistake of the program`
			err = fmt.Errorf("%v", r)
		}
	}()
	defer func() {
		if r := recover(); r != nil {
			fmt.Println("it panics")
			panic(r) // goes on
		}
	}()
	return nil
}

func parse() (err error) {
	defer func() { _ = recover() }() // no workflow code
	return nil
}

var (
	count  int
	seen   = map[string]bool{}
	state  struct{ n []int }
	total  atomic.Int64
	number int64
	shared sync.Map
)

func globals(ctx workflow.Context, seen2 map[string]bool) {
	count++              // want `a write to count, a variable of the package in workflow code: other runs and replays see it`
	seen["x"] = true     // want `a write to seen`
	delete(seen, "x")    // want `a write to seen`
	state.n[0] = 1       // want `a write to state`
	total.Add(1)         // want `a write to total`
	shared.Store("x", 1) // want `a write to shared`

	atomic.AddInt64(&number, 1) // want `a write to number`

	seen2["x"] = seen["x"]
	count := count
	count++
	_ = total.Load()
	_ = parse()
}

func conditions(ctx workflow.Context, f *workflow.Future[int]) {
	done := false
	_ = workflow.WaitFor(ctx, func() bool { return done || f.Ready() || workflow.Now(ctx).IsZero() })
	_ = workflow.WaitFor(ctx, func() bool {
		_, err := f.Get(ctx) // want `a condition that asks for something in workflow code: it may only read`
		return err == nil
	})
}
