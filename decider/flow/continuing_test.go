package flow

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/internal/sample"
	"github.com/droverhq/drover/schemas"
)

// ever takes signals and naps in turn, as long as it is not told to end, and counts what it has taken.
const ever = `
steps:
- let taken = x
- {id: again, step: wait-for-signal order}
- let one = ${output}
- {step: goto done, condition: {target: '${one}', equals: end}}
- let taken = ${taken}-${one}
- sleep 4m
- goto again
- {id: done, step: 'return ${workflow.start_mode} ${taken}'}
`

// startMode starts a run of a mode with a policy of continuation, as the monitor of always-on workflows does.
func startMode(t *testing.T, e *drovertest.Env, q *schemas.StartRequest) {
	t.Helper()
	body, err := schemas.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	m, err := natsconn.Of(e.Client).Request(ctx, subject.Namespace("default").API("start"), nil, body)
	var a schemas.StartResponse
	if err == nil {
		err = schemas.Unmarshal(m.Data, &a)
	}
	if err != nil || a.Error != nil {
		t.Fatalf("start: %v, %v", err, a.Error)
	}
}

// S2-6 to S2-9: a flow that waits for signals and sleeps is continued again and again. Its state is right in the end, no signal is lost
// or taken twice, the sleeps take no longer, each history is short, and the next run tells what began it.
func TestContinuations(t *testing.T) {
	sample.OneOfEight(t)
	d, err := Parse("ever", []byte(ever), nil)
	if err != nil {
		t.Fatal(err)
	}
	drovertest.Run(t, &drovertest.Options{Partitions: 1}, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Deciders(nil)
		w.Register("ever", New(one{d}, nil))
		e.Go(w)
		startMode(t, e, &schemas.StartRequest{
			V: schemas.Version, WorkflowID: "e", RequestID: "q", Type: "ever", StartMode: schemas.ModeAutoStart,
			Continuation: &schemas.ContinuationPolicy{After: schemas.Duration(10 * time.Minute)},
		})
		run := e.Client.Run("e", "")
		var want []string
		for n := range 18 {
			if err := run.Signal(t.Context(), "order", n); err != nil {
				t.Fatal(err)
			}
			want = append(want, fmt.Sprint(n))
			time.Sleep([]time.Duration{2, 8, 3, 20, 7, 11}[n%6] * time.Minute)
		}
		if err := run.Signal(t.Context(), "order", "end"); err != nil {
			t.Fatal(err)
		}
		var got string
		e.Result(run, &got)
		if text := "AutoStart (Continuation) x-" + strings.Join(want, "-"); got != text {
			t.Errorf("the flow returned\n%s, want\n%s", got, text)
		}
		runs, suggested := 0, 0
		for line, err := range e.Client.List(t.Context(), drover.ListOptions{WorkflowID: "e"}) {
			if err != nil {
				t.Fatal(err)
			}
			runs++
			if line.Events > 60 {
				t.Errorf("run %s has %d events", line.Run, line.Events)
			}
			for event, err := range e.Client.Run("e", line.Run).History(t.Context(), drover.HistoryOptions{}) {
				if err != nil {
					t.Fatal(err)
				}
				if _, ok := event.Attributes.(*schemas.ContinuationSuggested); ok {
					suggested++
				}
			}
		}
		if runs < 5 || suggested < runs-1 {
			t.Errorf("%d runs, of which %d were asked to continue", runs, suggested)
		}
	})
}
