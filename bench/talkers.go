package main

import (
	"context"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/schemas"
)

// answerPatience bounds each call of LC's load: what takes so long has broken off.
const answerPatience = 30 * time.Second

// listenAsWorker answers in the worker's process, at once: with a decision to the first question of a workflow, and to each task with an
// outcome and the decision behind it. fail is called when an outcome is not taken.
func listenAsWorker(conn *post.Conn, s *script, fail context.CancelCauseFunc) error {
	decisions, outcomes := &reel{all: s.Answered[askDecide]}, &reel{all: s.Asked[askOutcome]}
	owners, err := conn.NewOutbox(post.OutboxOptions{})
	if err != nil {
		return err
	}
	decide := func(m post.Msg) {
		if err := m.Respond(nil, decisions.turn()); err != nil {
			fail(err)
		}
	}
	act := func(m post.Msg) {
		number, err := readNumber(m.Data)
		if err != nil {
			fail(err)
			return
		}
		n, err := deskNumber(number, s.Partitions)
		if err != nil {
			fail(err)
			return
		}
		owners.Send(namespace.Beat(n, number, benchList), reported, outcomes.turn(), func(a post.Ack) {
			if a.Err != nil {
				fail(fmt.Errorf("an outcome of %s: %w", number, a.Err))
			}
		})
	}
	for _, l := range []struct {
		subject, queue string
		take           func(post.Msg)
	}{
		{namespace.Decide(talkType), deciderQueue, decide},
		{namespace.DecideSticky(talkType, stickyName), "", func(m post.Msg) {
			if len(m.Header[schemas.AheadHeader]) == 0 {
				decide(m)
				return
			}
			act(m)
		}},
	} {
		if _, err := conn.Subscribe(l.subject, l.queue, l.take); err != nil {
			return err
		}
	}
	return nil
}

// caller is LC's load.
type caller struct {
	conn           *post.Conn
	starts, awaits reel
}

func newCaller(conn *post.Conn, s *script) *caller {
	c := &caller{conn: conn}
	c.starts.all, c.awaits.all = s.Asked[askStart], s.Asked[askResult]
	return c
}

// workflow starts a workflow and waits for its result.
func (c *caller) workflow(ctx context.Context, i int) error {
	number := numberOf(i)
	if err := c.call(ctx, "start", numbered(number, c.starts.turn())); err != nil {
		return err
	}
	return c.call(ctx, "result", numbered(number, c.awaits.turn()))
}

func (c *caller) call(ctx context.Context, verb string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	_, err := c.conn.Request(ctx, namespace.API(verb), packed, body)
	return err
}
