package workflow_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover/decider/workflow"
)

// send sends values one after the other from a coroutine, and then closes the channel.
func send(ctx workflow.Context, c *workflow.Channel[string], values ...string) {
	workflow.Go(ctx, func(ctx workflow.Context) (struct{}, error) {
		for _, v := range values {
			if err := c.Send(ctx, v); err != nil {
				return struct{}{}, err
			}
		}
		c.Close()
		return struct{}{}, nil
	})
}

// Coroutines of a run hand each other values in their order, and none is lost or comes twice.
func TestChannels(t *testing.T) {
	howTheyEnd(t, []ending{
		{"values until the end", func(ctx workflow.Context, _ string) (string, error) {
			var got string
			for room := range 3 {
				c := workflow.NewChannel[string](room)
				send(ctx, c, "a", "b", "c")
				for {
					v, err := c.Receive(ctx)
					if errors.Is(err, workflow.ErrClosed) {
						break
					}
					got += v
					if err := workflow.Sleep(ctx, time.Second); err != nil {
						return "", err
					}
				}
			}
			return got, nil
		}, nil, `completed "abcabcabc"`},
		{"who sends waits for room", func(ctx workflow.Context, _ string) (string, error) {
			none, two := workflow.NewChannel[string](0), workflow.NewChannel[string](2)
			sent := 0
			count := func(c *workflow.Channel[string]) {
				workflow.Go(ctx, func(ctx workflow.Context) (struct{}, error) {
					for c.Send(ctx, "x") == nil {
						sent++
					}
					return struct{}{}, nil
				})
			}
			count(none)
			count(two)
			if err := workflow.Sleep(ctx, time.Second); err != nil {
				return "", err
			}
			before := sent
			for _, c := range []*workflow.Channel[string]{none, two} {
				if _, err := c.Receive(ctx); err != nil {
					return "", err
				}
			}
			err := workflow.Sleep(ctx, time.Second)
			return fmt.Sprint(before, " ", sent, " ", none.Len(), " ", two.Len()), err
		}, nil, `completed "2 4 0 2"`},
		{"a semaphore", func(ctx workflow.Context, _ string) (string, error) {
			places := workflow.NewChannel[struct{}](2)
			inside, most := 0, 0
			_, err := workflow.Map(ctx, make([]int, 5), 0, func(ctx workflow.Context, _ int) (int, error) {
				if err := places.Send(ctx, struct{}{}); err != nil {
					return 0, err
				}
				inside++
				most = max(most, inside)
				err := workflow.Sleep(ctx, time.Second)
				inside--
				_, _, _ = places.TryReceive()
				return 0, err
			})
			return fmt.Sprint(most), err
		}, nil, `completed "2"`},
		{"two that select each other", func(ctx workflow.Context, _ string) (string, error) {
			up, down := workflow.NewChannel[string](0), workflow.NewChannel[string](0)
			var got string
			speak := func(out, in *workflow.Channel[string], say string) *workflow.Future[struct{}] {
				return workflow.Go(ctx, func(ctx workflow.Context) (struct{}, error) {
					return struct{}{}, workflow.Select(ctx,
						workflow.SendTo(out, say, func() { got += "sent " + say + " " }),
						workflow.Receive(in, func(s string, _ error) { got += "received " + s + " " }))
				})
			}
			err := workflow.All(ctx, speak(up, down, "a"), speak(down, up, "b"))
			return got, err
		}, nil, `completed "received a sent a "`},
		{"what was not chosen is not sent", func(ctx workflow.Context, _ string) (string, error) {
			c := workflow.NewChannel[string](0)
			var got string
			err := workflow.Select(ctx,
				workflow.SendTo(c, "x", func() { got = "sent" }),
				workflow.On(workflow.Timer(ctx, time.Second), func(struct{}, error) { got = "over" }))
			_, ok, _ := c.TryReceive()
			return fmt.Sprint(got, " ", ok), err
		}, nil, `completed "over false"`},
		{"a canceled sender", func(ctx workflow.Context, _ string) (string, error) {
			inner, cancel := workflow.WithTimeout(ctx, time.Second)
			defer cancel()
			c := workflow.NewChannel[string](0)
			sent := c.Send(inner, "x")
			_, received := c.Receive(inner)
			_, ok, _ := c.TryReceive()
			return fmt.Sprint(errors.Is(sent, workflow.ErrTimeout), errors.Is(received, workflow.ErrTimeout), ok), nil
		}, nil, `completed "true true false"`},
		{"no room and a default", func(ctx workflow.Context, _ string) (string, error) {
			c := workflow.NewChannel[string](1)
			var got string
			for range 2 {
				err := workflow.Select(ctx, workflow.SendTo(c, "x", func() { got += "sent " }),
					workflow.Default(func() { got += "full" }))
				if err != nil {
					return "", err
				}
			}
			return got, nil
		}, nil, `completed "sent full"`},
	})
}
