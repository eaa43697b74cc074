package decider_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/droverhq/drover/decider/flow"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/workflow"
)

// flowWay is that of flows.
var flowWay = way{"flow", func(t *testing.T, r workflow.Registry, forgetful bool) {
	o := &flow.Options{}
	if forgetful {
		o.Warm = -1
	}
	shelf := flowShelf{}
	for name, text := range flows {
		d, err := flow.Parse(name, []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		shelf[name] = d
	}
	d := flow.New(shelf, o)
	for name := range flows {
		r.Register(name, d)
	}
}}

// flowShelf has one version of each flow.
type flowShelf map[string]*model.Definition

func (s flowShelf) Definition(
	_ context.Context,
	_, name, _ string,
) (*model.Definition, string, error) {
	d, ok := s[name]
	if !ok {
		return nil, "", fmt.Errorf("%w: %s", flow.ErrNoDefinition, name)
	}
	return d, d.Version(), nil
}

const flowWaits = "steps: [{type: child, workflow: kid-waits}]"

var flows = map[string]string{
	"several signals before the first decision": `
steps:
- wait for signal a = note
- wait for signal b = note
- wait for signal c = note
- return ${who} ${a}${b}${c}
`,
	"more events than a task holds": `
steps:
- let n = 0
- {id: again, step: wait for signal x = note}
- let n = ${n} + 1
- {step: goto again, condition: {target: "${x}", not: end}}
- return ${n} notes
`,
	"an activity with a large result": "steps: [activity large with who = x]",
	"an activity that fails twice": `
steps:
- step: activity third-time with who = x
  idempotent: yes
  on-error: retry limit 5 backoff 1m
`,
	"an activity that fails":            "steps: [{step: activity broken with who = x, on-error: return it failed}]",
	"an activity that runs out of time": "steps: [{step: activity hangs with who = x, on-error: return too late}]",
	"a timer that fires beside one that is canceled": `
steps:
- {step: sleep 1m, timeout: 1h}
- activity rests with who = x
`,
	"a cancel request while a timer runs":     "steps: [sleep 1d]",
	"a cancel request while an activity runs": "lock: held until all has ended\nsteps: [activity hangs with who = x]",
	"a child that completes":                  "steps: [{type: child, workflow: kid-good}]",
	"a child that fails":                      "steps: [{type: child, workflow: kid-bad, on-error: return it failed}]",
	"a child whose id is taken":               "steps: [{type: child, workflow: kid-good, run_id: taken, on-error: return refused}]",
	"a parent that is terminated":             flowWaits,
	"a parent that is terminated politely":    flowWaits,
	"a run that continues as new while signals come": `
steps:
- let all = ""
- {id: again, step: wait for signal x = note}
- {type: let, variable: all, value: "${all}${x}"}
- {step: goto again, condition: {target: "${x}", not: end}}
- return ${all}
`,
	"kid-good":  "steps: [return good]",
	"kid-bad":   "steps: [fail message bad]",
	"kid-waits": "steps: [sleep 1d]",
}
