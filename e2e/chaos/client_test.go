package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/faultproxy"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/signals"
)

const (
	// answerTime is how long a client waits for an answer before the outcome is unknown to it.
	answerTime = 6 * time.Second
	oneTry     = 2 * time.Second
)

// client is a user of Drover, after proxies of its own.
type client struct {
	n       int
	rec     *Recorder
	c       *drover.Client
	proxies []*faultproxy.Proxy
}

// outcomeOf says what an error leaves known. Refusals are certain; everything else may have happened.
func outcomeOf(err error) (Outcome, string) {
	if err == nil {
		return OK, ""
	}
	if refusal, ok := errors.AsType[*schemas.Error](err); ok && !again(refusal) {
		return Failed, err.Error()
	}
	for _, refused := range []error{drover.ErrAlreadyStarted, drover.ErrClosed, drover.ErrNotFound, drover.ErrConflict, drover.ErrInvalid} {
		if errors.Is(err, refused) {
			return Failed, err.Error()
		}
	}
	return Unknown, err.Error()
}

// do records an operation that has no result but its outcome.
func (c *client) do(o Op, fn func(o *Op) error) Op {
	o.Client = c.n
	return c.rec.Do(o, func(o *Op) { o.Outcome, o.Error = outcomeOf(fn(o)) })
}

// begin starts a plan under an id of its own. The request id is the same in every try of it.
func (c *client) begin(ctx context.Context, id string, p plan) Op {
	return c.do(Op{Kind: Begin, Key: id}, func(o *Op) error {
		run, err := c.c.Start(ctx, planType, p, &drover.StartOptions{ID: id, RequestID: "begin " + id, DecisionTimeout: 3 * time.Second})
		if err != nil {
			return err
		}
		o.Result = run.RunID
		return nil
	})
}

// signal signals by the API: a repeat of it, within the call, is told apart by its request id.
func (c *client) signal(ctx context.Context, id, value string) Op {
	return c.do(Op{Kind: Append, Key: id, Arg: value}, func(o *Op) error {
		err := c.c.Run(id, "").Signal(ctx, poke, value)
		if errors.Is(err, drover.ErrClosed) { // a try without an answer may have been the one that let the run close
			return fmt.Errorf("%v", err)
		}
		return err
	})
}

// publish signals as a stranger does: one message, with or without a message id.
func (c *client) publish(ctx context.Context, id, value string, once bool) Op {
	body, err := json.Marshal(value)
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	return c.do(Op{Kind: Append, Key: id, Arg: value}, func(o *Op) error {
		if once {
			_, err := signals.PublishOnce(ctx, c.c, c.c.Namespace(), id, poke, value, body)
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, oneTry)
		defer cancel()
		_, err := signals.Publish(ctx, c.c, c.c.Namespace(), id, poke, body)
		return err
	})
}

// start starts an id that others start too. It speaks the API itself, so that the run id is known whatever comes back.
func (c *client) start(ctx context.Context, id string, policy schemas.IDConflictPolicy) Op {
	run := ulid.Make().String()
	q := &schemas.StartRequest{
		V: schemas.Version, WorkflowID: id, Run: run, RequestID: run, Type: holdType, IDConflictPolicy: policy, Identity: "chaos",
	}
	return c.do(Op{Kind: Start, Key: id, Arg: run}, func(o *Op) error {
		var a schemas.StartResponse
		var err error
		if o.N, err = c.ask(ctx, "start", q, &a, func() *schemas.Error { return a.Error }); err != nil {
			if refusal, ok := errors.AsType[*schemas.Error](err); ok && refusal.Code == schemas.CodeAlreadyStarted {
				o.Result = refusal.Run
				return fmt.Errorf("%w: %w", drover.ErrAlreadyStarted, err)
			}
			return err
		}
		o.Result = a.Run
		return nil
	})
}

// ask repeats a request until it is answered, or answerTime is over, and counts the tries.
func (c *client) ask(ctx context.Context, verb string, q, answer any, refusal func() *schemas.Error) (tries uint64, err error) {
	body, err := schemas.Marshal(q)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	for {
		tries++
		err := c.askOnce(ctx, verb, body, answer, refusal)
		if !again(err) {
			return tries, err
		}
		select {
		case <-ctx.Done():
			return tries, fmt.Errorf("no answer: %w", err)
		case <-time.After(50*time.Millisecond + rand.N(100*time.Millisecond)):
		}
	}
}

func (c *client) askOnce(ctx context.Context, verb string, body []byte, answer any, refusal func() *schemas.Error) error {
	ctx, cancel := context.WithTimeout(ctx, oneTry)
	defer cancel()
	m, err := natsconn.Of(c.c).Request(ctx, namespace.API(verb), natsconn.Header{schemas.ContentTypeHeader: {schemas.ContentTypeMsgpack}}, body)
	if err != nil {
		return err
	}
	if err := schemas.Unmarshal(m.Data, answer); err != nil {
		return err
	}
	if r := refusal(); r != nil {
		return r
	}
	return nil
}

// again tells whether nobody has answered yet.
func again(err error) bool {
	if refusal, ok := errors.AsType[*schemas.Error](err); ok {
		return refusal.Code == schemas.CodeUnavailable || refusal.Code == schemas.CodeTimeout
	}
	return err != nil
}

// end terminates a run.
func (c *client) end(ctx context.Context, id, run string) Op {
	return c.do(Op{Kind: End, Key: id, Arg: run}, func(*Op) error {
		return c.c.Run(id, run).Terminate(ctx, &drover.TerminateOptions{Reason: "chaos"})
	})
}

// open reads which run of an id is open.
func (c *client) open(ctx context.Context, id string) Op {
	return c.do(Op{Kind: Open, Key: id}, func(o *Op) error {
		d, err := c.c.Run(id, "").Describe(ctx)
		switch {
		case errors.Is(err, drover.ErrNotFound):
			return nil
		case err != nil:
			return err
		case !d.Execution.Status.Closed():
			o.Result = d.Execution.Run
		}
		return nil
	})
}

// flag sets or resets the flag of a run: it is paused, or resumed.
func (c *client) flag(ctx context.Context, kind Kind, id, run, note string) Op {
	verb := "pause"
	if kind == Reset {
		verb = "resume"
	}
	q := &schemas.ExecutionRequest{V: schemas.Version, WorkflowID: id, Run: run, RequestID: ulid.Make().String(), Reason: note, Identity: "chaos"}
	return c.do(Op{Kind: kind, Key: id, Arg: note}, func(o *Op) (err error) {
		var a schemas.AckResponse
		o.N, err = c.ask(ctx, verb, q, &a, func() *schemas.Error { return a.Error })
		return err
	})
}

// log reads what was written beside the flag.
func (c *client) log(ctx context.Context, id, run string) Op {
	return c.read(ctx, Op{Kind: Log, Key: id}, run, func(a schemas.Attributes) (string, bool) {
		switch a := a.(type) {
		case *schemas.WorkflowPaused:
			return a.Reason, true
		case *schemas.WorkflowResumed:
			return a.Reason, true
		}
		return "", false
	})
}

// peek reads the signals that are in the history.
func (c *client) peek(ctx context.Context, id, run string) Op {
	return c.read(ctx, Op{Kind: Peek, Key: id}, run, signaled)
}

// signaled is the value of a signal of the load.
func signaled(a schemas.Attributes) (value string, ok bool) {
	s, ok := a.(*schemas.Signal)
	if !ok || s.SignalName != poke {
		return "", false
	}
	if s.Input.Decode(&value) != nil {
		return "", false
	}
	return value, true
}

func (c *client) read(ctx context.Context, o Op, run string, of func(schemas.Attributes) (string, bool)) Op {
	return c.do(o, func(o *Op) error {
		o.Values = []string{}
		for e, err := range c.c.Run(o.Key, run).History(ctx, drover.HistoryOptions{}) {
			if err != nil {
				return err
			}
			if v, ok := of(e.Attributes); ok {
				o.Values = append(o.Values, v)
			}
		}
		return nil
	})
}
