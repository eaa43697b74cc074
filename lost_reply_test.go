package drover_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// Every call repeats itself word for word when its answer, or the request itself, is lost, late or doubled, so that the
// service knows it again by its ids. It never asks the service for a second thing.
func TestRepliesAreLost(t *testing.T) { // P-5
	ctx := context.Background()
	ack := schemas.AckResponse{Run: "r1"}
	run := func(c *drover.Client) *drover.Run { return c.Run("o", "r1") }
	for verb, tt := range map[string]struct {
		answer any
		do     func(c *drover.Client) error
	}{
		"start": {schemas.StartResponse{WorkflowID: "o", Run: "r1", Started: true}, func(c *drover.Client) error {
			_, err := c.Start(ctx, "order", 1, &drover.StartOptions{ID: "o"})
			return err
		}},
		"signal":    {schemas.SignalResponse{Run: "r1"}, func(c *drover.Client) error { return run(c).Signal(ctx, "go", 1) }},
		"cancel":    {ack, func(c *drover.Client) error { return run(c).Cancel(ctx, "enough") }},
		"terminate": {ack, func(c *drover.Client) error { return run(c).Terminate(ctx, nil) }},
		"pause":     {ack, func(c *drover.Client) error { return run(c).Pause(ctx, "wait") }},
		"resume":    {ack, func(c *drover.Client) error { return run(c).Resume(ctx, "go on") }},
		"describe": {schemas.DescribeResponse{}, func(c *drover.Client) error {
			_, err := run(c).Describe(ctx)
			return err
		}},
		"why": {schemas.WhyResponse{Because: "it waits"}, func(c *drover.Client) error {
			_, err := run(c).Why(ctx)
			return err
		}},
		"result": {schemas.ResultResponse{Run: "r1", Status: schemas.StatusCompleted}, func(c *drover.Client) error { return run(c).Result(ctx, nil) }},
		"dead": {schemas.DeadResponse{Counts: []schemas.DeadCount{{Reason: "stale-token", Count: 2}}}, func(c *drover.Client) error {
			_, err := c.CountDeadLetters(ctx, drover.DeadOptions{})
			return err
		}},
	} {
		for fault, want := range map[cutwire.Verdict]struct {
			name  string
			asked int
		}{
			cutwire.Unanswered: {"answer lost", 2}, cutwire.Swallow: {"request lost", 1}, cutwire.Twice: {"request doubled", 2}, cutwire.Late: {"request late", 2},
		} {
			t.Run(verb+"/"+want.name, func(t *testing.T) {
				virtual.Run(t, func(t *testing.T) {
					bodies := lose(t, verb, fault, tt.answer, tt.do)
					if len(bodies) != want.asked {
						t.Fatalf("the service was asked %d times, want %d", len(bodies), want.asked)
					}
					for _, b := range bodies {
						if b != bodies[0] {
							t.Fatalf("asked %q, then %q", bodies[0], b)
						}
					}
				})
			})
		}
	}
}

// lose calls do with a fault on its first request of a verb, and returns what the service was asked.
func lose(t *testing.T, verb string, fault cutwire.Verdict, answer any, do func(*drover.Client) error) (bodies []string) {
	t.Helper()
	srv, err := embedded.Start(t.Context(), embedded.Options{DontListen: true, SyncInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Shutdown()
	wire := cutwire.New(srv.Conn())
	wire.Delay(8 * time.Second) // longer than the first try of any call
	hit := false
	wire.Judge(func(subj string, _ []byte) cutwire.Verdict {
		if hit || !strings.HasPrefix(subj, subject.Namespace("default").API(verb)) {
			return cutwire.Pass
		}
		hit = true
		return fault
	})
	conn, err := natsconn.Dial(t.Context(), natsconn.Options{InProcess: wire})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c, err := drover.Connect(t.Context(), &drover.Options{Conn: conn.NATS()})
	if err != nil {
		t.Fatal(err)
	}
	s := &service{t: t, conn: nil, asked: map[string][][]byte{}}
	if s.conn, err = natsconn.Dial(t.Context(), natsconn.Options{InProcess: srv.Conn()}); err != nil {
		t.Fatal(err)
	}
	defer s.conn.Close()
	on(s, verb, func(int, map[string]any) any { return answer })
	began := time.Now()
	if err := do(c); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Fatalf("took %v", took)
	}
	time.Sleep(10 * time.Second) // what is late comes in
	for _, b := range s.requests(verb) {
		bodies = append(bodies, string(b))
	}
	return bodies
}

// A start with a request id of the caller's names no run: the service derives it from the id, so that the repeat by
// another process, which would mint another one, is the same start.
func TestStartWithARequestIDNamesNoRun(t *testing.T) { // P-5
	c, s := newService(t, drover.Options{})
	var got schemas.StartRequest
	on(s, "start", func(_ int, req schemas.StartRequest) any {
		got = req
		return schemas.StartResponse{WorkflowID: req.WorkflowID, Run: "derived", Started: true}
	})
	run, err := c.Start(t.Context(), "order", nil, &drover.StartOptions{ID: "o", RequestID: "q1"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Run != "" || got.RequestID != "q1" || run.RunID != "derived" {
		t.Fatalf("asked for run %q with request id %q, got %q; want none, q1 and the one that the answer names", got.Run, got.RequestID, run.RunID)
	}
}
