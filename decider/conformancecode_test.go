package decider_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/schemas"
)

// codeWay is that of workflow code.
var codeWay = way{"code", func(_ *testing.T, r workflow.Registry, forgetful bool) {
	o := &workflow.Options{}
	if forgetful {
		o.Kept = -1
	}
	for name, fn := range codes {
		workflow.Implement(r, contract.Workflow[who, string](name, note), fn, o)
	}
}}

type code = func(ctx workflow.Context, in who) (string, error)

var (
	note  = contract.Signal[string]("note")
	naps  = contract.Activity[who, string]("naps")
	waits = codeOf(contract.Workflow[who, string]("kid-waits"), 0, "")
)

// codeOf calls an activity or a child. An end of the given kind is that of the text.
func codeOf(
	c contract.Callable[who, string],
	end workflow.CallOutcome,
	text string,
	opts ...contract.Option,
) code {
	return func(ctx workflow.Context, in who) (string, error) {
		result, err := workflow.Call(ctx, c, in, opts...)
		if call, ok := errors.AsType[*workflow.CallError](err); ok && text != "" &&
			call.Outcome == end {
			return text, nil
		}
		return result, err
	}
}

// receive returns n notes.
func receive(ctx workflow.Context, n int) (texts []string, err error) {
	for range n {
		text, err := workflow.Signals(ctx, note).Receive(ctx)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

var codes = map[string]code{
	"several signals before the first decision": func(ctx workflow.Context, in who) (string, error) {
		texts, err := receive(ctx, 3)
		return in.Who + " " + strings.Join(texts, ""), err
	},
	"a signal while the run closes": func(ctx workflow.Context, _ who) (string, error) {
		texts, err := receive(ctx, 1)
		for err == nil {
			text, ok, e := workflow.Signals(ctx, note).TryReceive()
			if !ok {
				break
			}
			texts, err = append(texts, text), e
		}
		return strings.Join(texts, ""), err
	},
	"more events than a task holds": func(ctx workflow.Context, _ who) (string, error) {
		for n := 1; ; n++ {
			if texts, err := receive(ctx, 1); err != nil || texts[0] == "end" {
				return fmt.Sprint(n, " notes"), err
			}
		}
	},
	"an activity with a large result": codeOf(contract.Activity[who, string]("large"), 0, ""),
	"an activity that fails twice": codeOf(contract.Activity[who, string]("third-time"), 0, "",
		contract.Retry(schemas.RetryPolicy{InitialInterval: schemas.Duration(time.Minute)})),
	"an activity that fails": codeOf(
		contract.Activity[who, string]("broken"),
		workflow.Failed,
		"it failed",
		contract.NoRetry(),
	),
	"an activity that runs out of time": codeOf(
		contract.Activity[who, string]("hangs"),
		workflow.TimedOut,
		"too late",
		contract.NoRetry(),
	),
	"activities that end in another order": func(ctx workflow.Context, _ who) (string, error) {
		var ends []string
		var failed error
		ended := func(text string, err error) { ends, failed = append(ends, text), errors.Join(failed, err) }
		long := workflow.On(workflow.Start(ctx, naps, who{"long"}), ended)
		short := workflow.On(workflow.Start(ctx, naps, who{"short"}), ended)
		for range 2 {
			if err := workflow.Select(ctx, long, short); err != nil {
				return "", err
			}
		}
		return strings.Join(ends, " "), failed
	},
	"a timer that fires beside one that is canceled": func(ctx workflow.Context, _ who) (string, error) {
		limited, cancel := workflow.WithTimeout(ctx, time.Hour)
		if err := workflow.Sleep(limited, time.Minute); err != nil {
			return "", err
		}
		cancel()
		return workflow.Call(ctx, contract.Activity[who, string]("rests"), who{})
	},
	"a cancel request while a timer runs": func(ctx workflow.Context, _ who) (string, error) {
		return "", workflow.Sleep(ctx, 24*time.Hour)
	},
	"a cancel request while an activity runs": codeOf(
		contract.Activity[who, string]("hangs"),
		0,
		"",
	),
	"a child that completes": codeOf(
		contract.Workflow[who, string]("kid-good"),
		0,
		"",
	),
	"a child that fails": codeOf(
		contract.Workflow[who, string]("kid-bad"),
		workflow.Failed,
		"it failed",
	),
	"a child whose id is taken": codeOf(
		contract.Workflow[who, string]("kid-good"),
		workflow.Refused,
		"refused",
		contract.WorkflowID(takenID),
	),
	"a parent that is terminated":          waits,
	"a parent that is terminated politely": waits,
	"a run that continues as new while signals come": func(ctx workflow.Context, in who) (string, error) {
		notes := workflow.Signals(ctx, note)
		all := strings.TrimPrefix(in.Who, "Ada")
		for {
			if err := workflow.WaitFor(ctx, func() bool {
				return notes.Len() > 0 || workflow.ContinueAsNewSuggested(ctx)
			}); err != nil {
				return "", err
			}
			text, ok, err := notes.TryReceive()
			switch all += text; {
			case err != nil || text == "end":
				return all, err
			case !ok:
				return workflow.ContinueAsNew(ctx, contract.Workflow[who, string](
					"a run that continues as new while signals come", note), who{all})
			}
		}
	},
	"kid-good": func(workflow.Context, who) (string, error) { return "good", nil },
	"kid-bad":  func(workflow.Context, who) (string, error) { return "", contract.Fault[struct{}]("bad") },
	"kid-waits": func(ctx workflow.Context, _ who) (string, error) {
		return "", workflow.Sleep(ctx, 24*time.Hour)
	},
}
