package flows

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/cmd/drover/workflows"
	"github.com/droverhq/drover/decider/flow"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/decider/flow/value"
)

// progress shows the steps of flows as they run, a line each: those that wait for something when
// they begin, all when they end, and what fails. It is shown while decisions are made, so one that
// is made again shows its steps again.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	flow  string // the one that is tried out
	began time.Time
	lines int
}

// mostLines bounds what a flow that goes round and round shows.
const mostLines = 10_000

func newProgress(w io.Writer, flow string) *progress {
	return &progress{w: w, flow: flow, began: time.Now()}
}

// waiting are the types of steps that take their time.
var waiting = []string{
	"activity", "http", "ssh", "shell", "container", "publish", "request", "load", "once", "sleep",
	"wait", "wait-for-signal", "approve", "child", "workflow", "foreach",
}

func (p *progress) step(t flow.Trace) {
	if t.Step == nil {
		p.line(t, t.Level+": "+t.Log)
		return
	}
	waits := slices.Contains(waiting, t.Step.Type)
	what := ""
	switch {
	case t.Did == run.Threw && t.Failure != nil:
		what = "failed: " + t.Failure.Message
	case t.Did == run.Threw:
		what = "failed"
	case t.Did == run.Began && waits:
		what = "begins"
	case t.Did == run.Ended && waits:
		what = "done" + shown(t.Output)
	case t.Did == run.Ended && t.Step.Type != "log": // its line tells
		what = "done"
	default:
		return
	}
	name := []string{t.Step.Type}
	for _, more := range []string{t.Step.ID, t.Step.Name} {
		if more != "" {
			name = append(name, cli.Word(more, 60))
		}
	}
	p.line(t, "step "+t.Step.Ref+", "+strings.Join(name, " ")+": "+what)
}

func (p *progress) line(t flow.Trace, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lines++; p.lines > mostLines {
		return
	}
	if p.lines == mostLines {
		text = "no more steps are shown"
	}
	of := ""
	switch {
	case t.Part == "" && t.Type != p.flow:
		of = cli.Word(t.Type, 80) + "  "
	case t.Part != "":
		// the step that it belongs to
		of = cli.Word(t.Run.WorkflowID[strings.IndexByte(t.Run.WorkflowID, ':')+1:], 80) + "  "
	}
	fmt.Fprintf(p.w, "%9s  %s%s\n", "+"+cli.Span(time.Since(p.began)), of, cli.Sentence(text))
}

// shown is an output after a colon, shortened.
func shown(v any) string {
	if v == nil {
		return ""
	}
	text, err := value.Encode(v)
	if err != nil || !json.Valid(text) {
		return ""
	}
	return ": " + workflows.Excerpt(text)
}
