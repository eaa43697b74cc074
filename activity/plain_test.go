package activity_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
)

// This file shows what a worker in any language needs: a NATS client and JSON. It uses no package of Drover; the rig plays
// the broker.

// plainTask and plainReport are the fields that a simple worker looks at.
type plainTask struct {
	Type          string          `json:"type"`
	Input         json.RawMessage `json:"input"`
	Token         string          `json:"token"`
	Report        string          `json:"report"`
	NotIdempotent bool            `json:"notIdempotent"`
}

type plainReport struct {
	Kind         string          `json:"kind"`
	Token        string          `json:"token"`
	Result       json.RawMessage `json:"result,omitempty"`
	Reason       string          `json:"reason,omitempty"`
	TaskSequence uint64          `json:"taskSequence,omitempty"`
	Redelivered  bool            `json:"redelivered,omitempty"`
	Nonce        string          `json:"nonce,omitempty"`
	ReplyTo      string          `json:"replyTo,omitempty"`
}

// plainWorker doubles numbers. The rig lends it its NATS connection.
type plainWorker struct {
	rig  *rig
	task plainTask
}

// work pulls one task, asks if it must, reports and acknowledges.
func (w *plainWorker) work(ctx context.Context) error {
	nc := w.rig.conn.NATS()
	inbox := nc.NewInbox()
	tasks, err := nc.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	next := "$JS.API.CONSUMER.MSG.NEXT.drover-default-tasks-PCI.workers"
	if err := nc.PublishRequest(next, inbox, []byte(`{"batch":1,"expires":60000000000}`)); err != nil {
		return err
	}
	m, err := tasks.NextMsgWithContext(ctx)
	if err != nil {
		return err
	}
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	w.task = plainTask{}
	if err := json.Unmarshal(m.Data, &w.task); err != nil {
		return err
	}
	if w.task.NotIdempotent || meta.NumDelivered > 1 {
		if err := w.ask(ctx, meta.Sequence.Stream, meta.NumDelivered > 1); err != nil {
			return err
		}
	}
	outcome := plainReport{Kind: "failed", Token: w.task.Token, Reason: "bad-input"}
	var n int
	if json.Unmarshal(w.task.Input, &n) == nil {
		outcome = plainReport{Kind: "success", Token: w.task.Token, Result: fmt.Append(nil, 2*n)}
	}
	if err := w.report(ctx, outcome); err != nil {
		return err
	}
	return m.Ack()
}

// ask asks whether this delivery may run. The answer brings the token to report under.
func (w *plainWorker) ask(ctx context.Context, sequence uint64, again bool) error {
	nc := w.rig.conn.NATS()
	inbox := nc.NewInbox()
	answers, err := nc.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	q := plainReport{Kind: "begin", Token: w.task.Token, TaskSequence: sequence, Redelivered: again, Nonce: "n-1", ReplyTo: inbox}
	if err := w.report(ctx, q); err != nil {
		return err
	}
	m, err := answers.NextMsgWithContext(ctx)
	if err != nil {
		return err
	}
	var p struct {
		Nonce string `json:"nonce"`
		Token string `json:"token"`
		Go    bool   `json:"go"`
	}
	if err := json.Unmarshal(m.Data, &p); err != nil {
		return err
	}
	if !p.Go || p.Nonce != "n-1" {
		return fmt.Errorf("got answer %+v, want go for n-1", p)
	}
	w.task.Token = p.Token
	return nil
}

// report publishes a report and waits until it is stored.
func (w *plainWorker) report(ctx context.Context, p plainReport) error {
	body, err := json.Marshal(p)
	if err == nil {
		_, err = w.rig.conn.NATS().RequestWithContext(ctx, w.task.Report, body)
	}
	return err
}

func TestWorkerOfJSONAlone(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w := &plainWorker{rig: r}
		for _, tc := range []struct{ input, kind, result string }{{"21", "success", "42"}, {`"many"`, "failed", ""}} {
			r.dispatchPlain(tc.input, false)
			if err := w.work(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.nextPlain(tc.kind, "RUN.5.1", tc.result)
		}
		r.dispatchPlain("4", true)
		done := make(chan error, 1)
		go func() { done <- w.work(t.Context()) }()
		r.permitPlain("RUN.5.2")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		r.nextPlain("success", "RUN.5.2", "8")
		r.settled("PCI")
	})
}
