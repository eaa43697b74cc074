package stranger

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// consumer is the one durable consumer of every task list.
const consumer = "workers"

// permissionWait is how long the owner of a workflow may take to answer.
const permissionWait = 30 * time.Second

// delivery is a task in hand.
type delivery struct {
	msg         jetstream.Msg
	sequence    uint64
	redelivered bool
	nonce       string
	task        struct {
		Token         string          `json:"token"`
		Report        string          `json:"report"`
		Attempt       int             `json:"attempt"`
		Input         json.RawMessage `json:"input"`
		NotIdempotent bool            `json:"notIdempotent"`
	}
}

type worker struct {
	nc  *nats.Conn
	js  jetstream.JetStream
	out *printer

	mu   sync.Mutex
	open []*delivery
}

// Worker takes the tasks of a list until ctx ends or its orders do.
func Worker(ctx context.Context, c Config) error {
	nc, err := connect(c)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	w := &worker{nc: nc, js: js, out: &printer{enc: json.NewEncoder(c.Out)}}
	if err := w.openList(ctx, c.Name); err != nil {
		return err
	}
	if !c.Puppet {
		return w.pull(ctx, c.Name, w.work)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pulled := make(chan error, 1)
	go func() { pulled <- w.pull(ctx, c.Name, func(context.Context, int, *delivery) {}) }()
	err = orders(c.In, func(l Line) { w.obey(ctx, l) })
	cancel()
	return errors.Join(err, <-pulled)
}

// openList asks for the list's stream and consumer, until somebody answers.
func (w *worker) openList(ctx context.Context, list string) error {
	request, err := json.Marshal(map[string]string{"list": list})
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		m, err := w.nc.Request("drover.default.api.tasklist", request, time.Second)
		if err != nil { // nobody serves it now
			pause(ctx)
			continue
		}
		var answer struct {
			Error *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if err := json.Unmarshal(m.Data, &answer); err != nil {
			return err
		}
		if answer.Error != nil {
			return fmt.Errorf("open list %s: %s", list, answer.Error.Message)
		}
		return nil
	}
	return ctx.Err()
}

// pull fetches one task after the other. A server that is away is asked again.
func (w *worker) pull(
	ctx context.Context, list string, fn func(context.Context, int, *delivery),
) error {
	for ctx.Err() == nil {
		c, err := w.js.Consumer(ctx, "drover-default-tasks-"+list, consumer)
		if err != nil {
			pause(ctx)
			continue
		}
		batch, err := c.Fetch(1, jetstream.FetchMaxWait(2*time.Second))
		if err != nil {
			pause(ctx)
			continue
		}
		for msg := range batch.Messages() {
			d, err := open(msg)
			if err != nil {
				w.out.print(Line{Error: err.Error()})
				continue
			}
			w.mu.Lock()
			w.open = append(w.open, d)
			n := len(w.open)
			w.mu.Unlock()
			w.out.print(
				Line{N: n, Task: msg.Data(), Sequence: d.sequence, Redelivered: d.redelivered})
			fn(ctx, n, d)
		}
	}
	return nil
}

// pause keeps a worker whose server is away from spinning.
func pause(ctx context.Context) {
	t := time.NewTimer(50 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func open(msg jetstream.Msg) (*delivery, error) {
	meta, err := msg.Metadata()
	if err != nil {
		return nil, err
	}
	d := &delivery{
		msg:         msg,
		sequence:    meta.Sequence.Stream,
		redelivered: meta.NumDelivered > 1,
		nonce:       rand.Text(),
	}
	return d, json.Unmarshal(msg.Data(), &d.task)
}

// work does a task as the protocol demands: a question first where one is due, then the outcome,
// then the ack.
func (w *worker) work(ctx context.Context, n int, d *delivery) {
	if d.task.NotIdempotent || d.redelivered {
		raw, err := w.begin(d)
		if err != nil {
			w.out.print(Line{N: n, Error: err.Error()})
			return
		}
		w.out.print(Line{N: n, Permission: raw})
		var p struct {
			Go      bool   `json:"go"`
			Attempt int    `json:"attempt"`
			Token   string `json:"token"`
		}
		if err := json.Unmarshal(raw, &p); err != nil {
			w.out.print(Line{N: n, Error: err.Error()})
			return
		}
		if !p.Go {
			w.ack(ctx, n, d)
			return
		}
		d.task.Token, d.task.Attempt = p.Token, p.Attempt
	}
	outcome, err := json.Marshal(map[string]any{
		"kind": "success", "token": d.task.Token, "identity": "a stranger", "nonce": d.nonce,
		"taskSequence": d.sequence,
		"result":       map[string]any{"attempt": d.task.Attempt, "input": d.task.Input},
	})
	if err != nil {
		w.out.print(Line{N: n, Error: err.Error()})
		return
	}
	w.report(ctx, n, d, outcome)
	w.ack(ctx, n, d)
}

// obey does one step of a task.
func (w *worker) obey(ctx context.Context, l Line) {
	w.mu.Lock()
	d := w.open[l.N-1]
	w.mu.Unlock()
	switch l.Do {
	case "report":
		w.report(ctx, l.N, d, l.Body)
	case "begin":
		p, err := w.begin(d)
		if err != nil {
			w.out.print(Line{N: l.N, Error: err.Error()})
			return
		}
		w.out.print(Line{N: l.N, Permission: p})
	case "ack":
		w.ack(ctx, l.N, d)
	default:
		w.out.print(Line{N: l.N, Error: fmt.Sprintf("no order %q", l.Do)})
	}
}

func (w *worker) report(ctx context.Context, n int, d *delivery, body []byte) {
	a, err := w.js.Publish(ctx, d.task.Report, body)
	if err != nil {
		w.out.print(Line{N: n, Error: err.Error()})
		return
	}
	w.out.print(Line{N: n, Stored: a.Sequence})
}

func (w *worker) ack(ctx context.Context, n int, d *delivery) {
	if err := d.msg.DoubleAck(ctx); err != nil {
		w.out.print(Line{N: n, Error: err.Error()})
		return
	}
	w.out.print(Line{N: n, Acked: true})
}

// begin asks the owner of the workflow whether this delivery may run.
func (w *worker) begin(d *delivery) ([]byte, error) {
	inbox := w.nc.NewInbox()
	sub, err := w.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	question, err := json.Marshal(map[string]any{
		"kind": "begin", "token": d.task.Token, "identity": "a stranger",
		"taskSequence": d.sequence, "redelivered": d.redelivered, "nonce": d.nonce,
		"replyTo": inbox,
	})
	if err != nil {
		return nil, err
	}
	if _, err := w.js.Publish(context.Background(), d.task.Report, question); err != nil {
		return nil, err
	}
	m, err := sub.NextMsg(permissionWait)
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}
