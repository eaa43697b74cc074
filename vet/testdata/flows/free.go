package flows

import (
	"context"
	"os"
	"time"

	"github.com/droverhq/drover/decider/workflow"
	"shop/helpers"
)

// The functions of Do and Once may do what they like.
func steps(ctx workflow.Context) error {
	_ = workflow.Once(ctx, "now", time.Now)
	_ = workflow.Once(ctx, "home", func() string { return os.Getenv("HOME") })
	pid := func() int { return os.Getpid() }
	_ = workflow.Once(ctx, "pid", pid)
	_, _ = workflow.Do(ctx, "read", func(ctx context.Context) ([]byte, error) {
		done := make(chan int)
		go func() { close(done) }()
		<-done
		return os.ReadFile("f")
	})
	read := func(context.Context) (string, error) { return helpers.Name(), nil }
	_, err := workflow.Do(ctx, "name", read)
	_, _ = workflow.Do(ctx, os.Getenv("NAME"), read) // want `os.Getenv`
	return err
}

func silenced(ctx workflow.Context) {
	_ = time.Now() //drover:ok it is compared with nothing
	//drover:ok that, too
	_ = time.Now()
	_ = time.Now() // want `time.Now`
	/* want `say why` */ //drover:ok
	_ = time.Now()       // want `time.Now`
	//drover:okay is another word
	_ = time.Now() // want `time.Now`
	go work()      //drover:ok it ends at once
}

// A worker declares workflows in functions that are none.
func main() { // want main:`time.Now at free.go:\d+`
	run := func(fn func(workflow.Context) error) {}
	_ = time.Now()
	run(func(ctx workflow.Context) error {
		_ = time.Now() // want `time.Now`
		return nil
	})
}

var declared = func(ctx workflow.Context) {
	_ = time.Now() // want `time.Now`
}
