// Package stranger is a decider and an activity worker as somebody would write them who has never
// seen this module: it knows the documented subjects and JSON forms, nats.go, encoding/json, and
// nothing of ours. A test reads its imports. The tests of package e2e run it as processes of their
// own.
//
// Both take orders from standard input and report on standard output, one JSON object a line, so
// that a test can hold each step until the one before it is in the history, and can play a fool
// that answers with garbage. What they report is n, the number of the task, and one of the fields
// of [Line].
package stranger

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Config says where and for what to listen.
type Config struct {
	// URL of NATS.
	URL string
	// Name is the workflow type of a decider, the task list of a worker: letters only.
	Name string
	// Puppet: wait for orders. Else the decider completes every workflow, and the worker succeeds
	// in every task.
	Puppet bool
	In     io.Reader
	Out    io.Writer
}

// Line is what goes through the pipes. N is the number of the task that it is about, from 1 on.
type Line struct {
	N int `json:"n"`
	// Task is reported when a task has come, Sequence and Redelivered with an activity's.
	Task        json.RawMessage `json:"task,omitempty"`
	Sequence    uint64          `json:"sequence,omitempty"`
	Redelivered bool            `json:"redelivered,omitempty"`
	// Reply is the order to a decider: the bytes to answer with.
	Reply []byte `json:"reply,omitempty"`
	// Do is the order to a worker: "report" the Body, ask whether to "begin", or "ack".
	Do   string          `json:"do,omitempty"`
	Body json.RawMessage `json:"body,omitempty"`
	// Stored is reported after "report", Permission after "begin", Acked after "ack", or Error.
	Stored     uint64          `json:"stored,omitempty"`
	Permission json.RawMessage `json:"permission,omitempty"`
	Acked      bool            `json:"acked,omitempty"`
	Error      string          `json:"error,omitempty"`
}

// printer writes lines.
type printer struct {
	mu  sync.Mutex
	enc *json.Encoder
}

func (p *printer) print(l Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.enc.Encode(l) // whoever reads is gone, and so will this process be
}

func connect(c Config) (*nats.Conn, error) {
	return nats.Connect(c.URL, nats.Name("stranger"), nats.MaxReconnects(-1),
		nats.ReconnectWait(50*time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.RetryOnFailedConnect(true))
}

// orders calls fn for each line of in, until it ends.
func orders(in io.Reader, fn func(Line)) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		var l Line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return fmt.Errorf("order %q: %w", lines.Bytes(), err)
		}
		fn(l)
	}
	return lines.Err()
}

// Decider serves a workflow type until ctx ends or its orders do.
func Decider(ctx context.Context, c Config) error {
	nc, err := connect(c)
	if err != nil {
		return err
	}
	defer nc.Close()
	out := &printer{enc: json.NewEncoder(c.Out)}
	var mu sync.Mutex
	var open []*nats.Msg
	_, err = nc.QueueSubscribe("drover.default.decide."+c.Name, "deciders", func(m *nats.Msg) {
		mu.Lock()
		open = append(open, m)
		n := len(open)
		mu.Unlock()
		out.print(Line{N: n, Task: m.Data})
		if c.Puppet {
			return
		}
		var task struct {
			Token string `json:"token"`
		}
		if err := json.Unmarshal(m.Data, &task); err != nil {
			out.print(Line{N: n, Error: err.Error()})
			return
		}
		reply, err := json.Marshal(map[string]any{
			"token": task.Token,
			"decisions": []any{
				map[string]any{
					"type":       "CompleteWorkflow",
					"attributes": map[string]any{"result": "done"},
				},
			},
		})
		if err == nil {
			err = m.Respond(reply)
		}
		if err != nil {
			out.print(Line{N: n, Error: err.Error()})
		}
	})
	if err != nil {
		return err
	}
	announce := func() error { return nc.Publish("drover.default.announce."+c.Name, nil) }
	nc.SetReconnectHandler(func(*nats.Conn) { _ = announce() })
	if err := announce(); err != nil {
		return err
	}
	if !c.Puppet {
		<-ctx.Done()
		return nil
	}
	return orders(c.In, func(l Line) {
		mu.Lock()
		m := open[l.N-1]
		mu.Unlock()
		if err := m.Respond(l.Reply); err != nil {
			out.print(Line{N: l.N, Error: err.Error()})
		}
	})
}
