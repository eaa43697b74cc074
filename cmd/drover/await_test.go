package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
)

// U2: a wait says after a while what the workflow waits for, and an interrupt how to go on waiting.
func TestWaits(t *testing.T) {
	s := newService(t)
	on(s, "start", func(req schemas.StartRequest) any {
		return schemas.StartResponse{WorkflowID: req.WorkflowID, Run: "r1", Started: true}
	})
	on(s, "result", func(schemas.ExecutionRequest) any {
		return schemas.ResultResponse{Run: "r1", Status: schemas.StatusOpen}
	})
	on(s, "why", func(schemas.ExecutionRequest) any { return schemas.WhyResponse{Because: "nobody decides for it"} })
	on(s, "describe", func(req schemas.ExecutionRequest) any {
		return schemas.DescribeResponse{Execution: schemas.ExecutionInfo{WorkflowID: req.WorkflowID, Run: "r1"}}
	})
	where := " --nats " + s.url
	for _, tt := range []struct {
		args []string
		hint string
	}{
		{[]string{"start", "order", "--id", "order-17", "--wait"}, "drover result order-17 --run r1" + where},
		{[]string{"result", "it's one"}, `drover result 'it'\''s one' --run r1` + where},
		{[]string{"result", "order-17", "--run", "r1"}, "drover result order-17 --run r1" + where},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			stderr := newWatched("waiting: nobody decides for it\n", interrupt)
			var stdout bytes.Buffer
			code := execute(ctx, append(tt.args, "--nats", s.url, "--timeout", "50s"), strings.NewReader(""), &stdout, stderr)
			result{code, stdout.String(), stderr.String()}.want(t, cli.ExitInterrupted, "", "the workflow goes on", "  wait for it again: "+tt.hint+"\n")
		})
	}
}

// U2: stderr is one document if documents are wanted.
func TestInterruptedWaitIsOneDocument(t *testing.T) {
	s := newService(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	on(s, "result", func(schemas.ExecutionRequest) any {
		interrupt()
		return schemas.ResultResponse{Run: "r1", Status: schemas.StatusOpen}
	})
	var stderr bytes.Buffer
	code := execute(ctx, []string{"result", "order-17", "--run", "r1", "--json", "--nats", s.url}, strings.NewReader(""), io.Discard, &stderr)
	var doc struct{ Error schemas.Error }
	if err := json.Unmarshal(stderr.Bytes(), &doc); err != nil || code != cli.ExitInterrupted || !strings.Contains(doc.Error.Hint, "drover result order-17 --run r1") {
		t.Errorf("got %d %v %s", code, err, &stderr)
	}
}

// watched is a writer that calls fn once it holds words.
type watched struct {
	mu    sync.Mutex
	b     bytes.Buffer
	words string
	fn    func()
}

func newWatched(words string, fn func()) *watched { return &watched{words: words, fn: fn} }

// Write implements [io.Writer].
func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b.Write(b)
	if w.fn != nil && strings.Contains(w.b.String(), w.words) {
		w.fn()
		w.fn = nil
	}
	return len(b), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}
