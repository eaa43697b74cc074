package decider_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/schemas"
)

// rawWay is that of deciders that look at a View of all that has happened.
var rawWay = way{"raw", func(_ *testing.T, r workflow.Registry, _ bool) {
	for name, decide := range rawDeciders {
		r.Register(
			name,
			decider.Func(func(ctx context.Context, t *decider.Task) (decisions, error) {
				v, err := t.View(ctx)
				if err != nil {
					return nil, err
				}
				return decide(t, v)
			}),
		)
	}
}}

type decisions = []schemas.Decision

type rawDecider func(t *decider.Task, v *decider.View) (decisions, error)

// notes are what signals have brought, in their order.
func notes(v *decider.View) (texts []string) {
	for _, p := range v.Signals("note") {
		var text string
		if err := json.Unmarshal(p, &text); err != nil {
			text = err.Error()
		}
		texts = append(texts, text)
	}
	return texts
}

func whoOf(v *decider.View) string {
	var in who
	if err := v.Input().Decode(&in); err != nil {
		return err.Error()
	}
	return in.Who
}

// calls schedules an activity, and completes with its result or with what it says of its end.
func calls(
	typ string,
	end map[decider.ActivityStatus]string,
	opts ...decider.ActivityOption,
) rawDecider {
	return func(_ *decider.Task, v *decider.View) (decisions, error) {
		status, result, _ := v.Activity("a")
		switch text, ended := end[status]; {
		case status == 0:
			return decisions{decider.Schedule("a", typ, who{"Ada"}, opts...)}, nil
		case ended:
			return decisions{decider.Complete(text)}, nil
		case status == decider.ActivitySucceeded:
			return decisions{decider.Complete(result)}, nil
		case status == decider.ActivityCanceled:
			return decisions{decider.Cancel(nil)}, nil
		case v.CancelRequested():
			return decisions{decider.CancelActivity("a")}, nil
		}
		return nil, nil
	}
}

// begets starts a child, and completes with its result or with what it says of its end.
func begets(typ, id string, end map[decider.ChildStatus]string) rawDecider {
	return func(t *decider.Task, v *decider.View) (decisions, error) {
		id := cmp.Or(id, "child of "+t.Execution().WorkflowID)
		kid := v.Child(id)
		switch text, ended := end[kid.Status]; {
		case kid.Status == 0:
			return decisions{decider.StartChild(id, typ, nil)}, nil
		case ended:
			return decisions{decider.Complete(text)}, nil
		case kid.Status == decider.ChildSucceeded:
			return decisions{decider.Complete(kid.Result)}, nil
		}
		return nil, nil
	}
}

var (
	itFailed   = map[decider.ChildStatus]string{decider.ChildFailed: "it failed"}
	rawWaiting = begets("kid-waits", "", nil)
)

var rawDeciders = map[string]rawDecider{
	"several signals before the first decision": func(_ *decider.Task, v *decider.View) (decisions, error) {
		if all := notes(v); len(all) == 3 {
			return decisions{decider.Complete(whoOf(v) + " " + strings.Join(all, ""))}, nil
		}
		return nil, nil
	},
	"a signal while the run closes": func(_ *decider.Task, v *decider.View) (decisions, error) {
		if all := notes(v); len(all) > 0 {
			return decisions{decider.Complete(strings.Join(all, ""))}, nil
		}
		return nil, nil
	},
	"more events than a task holds": func(_ *decider.Task, v *decider.View) (decisions, error) {
		if all := notes(v); len(all) > 0 && all[len(all)-1] == "end" {
			return decisions{decider.Complete(fmt.Sprint(len(all), " notes"))}, nil
		}
		return nil, nil
	},
	"an activity with a large result": calls("large", nil),
	"an activity that fails twice": calls("third-time", nil, decider.Retry(schemas.RetryPolicy{
		InitialInterval: schemas.Duration(time.Minute),
	})),
	"an activity that fails": calls(
		"broken",
		map[decider.ActivityStatus]string{decider.ActivityFailed: "it failed"},
	),
	"an activity that runs out of time": calls(
		"hangs",
		map[decider.ActivityStatus]string{decider.ActivityTimedOut: "too late"},
	),
	"activities that end in another order": func(t *decider.Task, v *decider.View) (decisions, error) {
		if v.Counts().Scheduled == 0 {
			return decisions{
				decider.Schedule(
					"1",
					"naps",
					who{"long"},
				), decider.Schedule("2", "naps", who{"short"}),
			}, nil
		}
		if !v.Done("1", "2") {
			return nil, nil
		}
		var ends []string
		for e, err := range t.History(context.Background()) {
			if err != nil {
				return nil, err
			}
			if a, ok := e.Attributes.(*schemas.ActivitySuccess); ok {
				ends = append(ends, strings.Trim(string(a.Result), `"`))
			}
		}
		return decisions{decider.Complete(strings.Join(ends, " "))}, nil
	},
	"a timer that fires beside one that is canceled": func(t *decider.Task, v *decider.View) (decisions, error) {
		switch {
		case v.Timer("short") == 0:
			return decisions{
				decider.Timer("long", time.Hour),
				decider.Timer("short", time.Minute),
			}, nil
		case v.Timer("long") == decider.TimerCanceled:
			return calls("rests", nil)(t, v)
		case v.Timer("short") == decider.TimerFired:
			return decisions{
				decider.CancelTimer("long"),
				decider.Schedule("a", "rests", nil),
			}, nil
		}
		return nil, nil
	},
	"a cancel request while a timer runs": func(_ *decider.Task, v *decider.View) (decisions, error) {
		switch {
		case v.CancelRequested():
			return decisions{decider.Cancel(nil)}, nil
		case v.Timer("day") == 0:
			return decisions{decider.Timer("day", 24*time.Hour)}, nil
		}
		return nil, nil
	},
	"a cancel request while an activity runs": calls("hangs", nil),
	"a child that completes":                  begets("kid-good", "", nil),
	"a child that fails":                      begets("kid-bad", "", itFailed),
	"a child whose id is taken": begets(
		"kid-good",
		takenID,
		map[decider.ChildStatus]string{decider.ChildRefused: "refused"},
	),
	"a parent that is terminated":          rawWaiting,
	"a parent that is terminated politely": rawWaiting,
	"a run that continues as new while signals come": func(t *decider.Task, v *decider.View) (decisions, error) {
		all := strings.Join(notes(v), "")
		if v.ContinuedRun() != "" {
			all = whoOf(v) + all
		}
		switch {
		case strings.HasSuffix(all, "end"):
			return decisions{decider.Complete(all)}, nil
		case t.SuggestContinueAsNew():
			return decisions{decider.ContinueAsNew(who{all})}, nil
		}
		return nil, nil
	},
	"kid-good": func(*decider.Task, *decider.View) (decisions, error) {
		return decisions{decider.Complete("good")}, nil
	},
	"kid-bad": func(*decider.Task, *decider.View) (decisions, error) {
		return decisions{decider.Fail("bad", nil)}, nil
	},
	"kid-waits": func(_ *decider.Task, v *decider.View) (decisions, error) {
		if v.CancelRequested() {
			return decisions{decider.Cancel(nil)}, nil
		}
		return nil, nil
	},
}
