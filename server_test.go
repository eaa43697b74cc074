package drover_test

import (
	"context"
	"errors"
	"log"
	"sync"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/server"
)

// exampleServer is the address of a server for the examples, which run after all tests. It starts with the first one.
var exampleServer = sync.OnceValue(func() string {
	s, err := server.New(server.Options{Embedded: embedded.Options{Port: -1}})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	info, err := s.Ready(ctx)
	if err != nil {
		log.Fatal(err)
	}
	go exampleDeciders(ctx, info.URL)
	stopExamples = func() {
		cancel()
		if err := <-ended; err != nil {
			log.Printf("the examples' server: %v", err)
		}
	}
	return info.URL
})

// stopExamples is called when everything has run.
var stopExamples = func() {}

// exampleDeciders serves the types that the examples start: broken fails at once, gate waits for the signal open and
// returns its input. Nobody serves order and stable.
func exampleDeciders(ctx context.Context, url string) {
	c, err := drover.Connect(ctx, &drover.Options{URL: url})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	w := c.Deciders(nil)
	w.Register("broken", decider.Func(func(context.Context, *decider.Task) ([]schemas.Decision, error) {
		return []schemas.Decision{decider.Fail("out-of-oxen", nil)}, nil
	}))
	w.Register("gate", decider.Func(func(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
		v, err := t.View(ctx)
		if err != nil {
			return nil, err
		}
		if opened := v.Signals("open"); len(opened) > 0 {
			return []schemas.Decision{decider.Complete(opened[0])}, nil
		}
		return nil, nil
	}))
	if err := w.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		log.Printf("the examples' deciders: %v", err)
	}
}

// exampleClient connects to the examples' server.
func exampleClient() (context.Context, *drover.Client) {
	ctx := context.Background()
	c, err := drover.Connect(ctx, &drover.Options{URL: exampleServer()})
	if err != nil {
		log.Fatal(err)
	}
	return ctx, c
}
