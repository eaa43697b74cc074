package docs_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider/flow"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/drovertest"
)

// typeRuns are how the example of each step type is run, by the type. In flow, EXAMPLE stands for the line of the page.
var typeRuns = map[string]struct {
	flow string
	flowRun
}{
	"activity":    {"- EXAMPLE", flowRun{input: `{"amount": 5}`, does: `charge {"amount":5,"currency":"EUR"}`, result: `{"amount":5,"currency":"EUR"}`}},
	"approve":     {"- EXAMPLE", flowRun{input: `{"team": "red"}`, signals: map[string]string{"approve": "true"}, result: `{"approved":true}`}},
	"child":       {"- EXAMPLE", flowRun{input: `{"order": 7}`, result: `"shipped 7"`}},
	"clear-state": {"- set-state count = 3\n- EXAMPLE\n- let x = ${state.count} ?? gone\n- return ${x}", flowRun{result: `"gone"`}},
	"clear-workflow-variable": {
		"- let x = 1\n- EXAMPLE\n- let y = ${x} ?? gone\n- return ${y}", flowRun{result: `"gone"`},
	},
	"container": {"- EXAMPLE", flowRun{does: `container {"command":"echo hello","image":"alpine:3"}`, result: `{"command":"echo hello","image":"alpine:3"}`}},
	"fail":      {"- {step: EXAMPLE, on-error: 'return ${workflow.error.message}'}", flowRun{input: `{"details": "no money"}`, result: `"the request was denied: no money"`}},
	"foreach":   {"- EXAMPLE\n- return done", flowRun{result: `"done"`}},
	"goto": {
		"- {id: again, step: 'let n = ( ${n} ?? 0 ) + 1'}\n- {step: 'return ${n}', condition: {target: '${n}', equals: 3}}\n- EXAMPLE", flowRun{result: "3"},
	},
	"http":  {"- EXAMPLE", flowRun{input: `{"item": "hat"}`, does: `http {"url":"https://example.com/prices?item=hat"}`, result: `{"status_code":200}`, answers: map[string]string{"http": `{"status_code": 200}`}}},
	"if":    {"- EXAMPLE\n- log never", flowRun{input: `{"count": 3}`}},
	"label": {"- EXAMPLE\n- let n = ( ${n} ?? 0 ) + 1\n- {step: goto again, condition: {target: '${n}', less-than: 3}}\n- return ${n}", flowRun{result: "3"}},
	"let":   {"- EXAMPLE\n- return ${x}", flowRun{input: `{"x": 1}`, result: "2"}},
	"load":  {"- EXAMPLE\n- return ${prices.hat}", flowRun{answers: map[string]string{"load": `"hat: 12"`}, does: `load {"url":"https://example.com/prices.json"}`, result: "12"}},
	"log":   {"- EXAMPLE", flowRun{input: `{"count": 3}`, logs: "the count is 3"}},
	"no-op": {"- no-op\n- return done", flowRun{result: `"done"`}},
	"once": {
		"- EXAMPLE", flowRun{
			does: `drover.once {"name":"daily-report","period":"day","timeZone":"Europe/Berlin"}`, answers: map[string]string{"drover.once": `{"first": true, "period": "2000-01-01", "by": {"caller": "x"}}`},
			result: `{"first":true,"period":"2000-01-01"}`,
		},
	},
	"publish": {
		"- EXAMPLE", flowRun{input: `{"order": {"id": 7}}`, does: `publish {"body":{"id":7},"subject":"orders.shipped"}`, result: `{"body":{"id":7},"subject":"orders.shipped"}`},
	},
	"request": {"- EXAMPLE", flowRun{input: `{"item": "hat"}`, does: `request {"body":"hat","subject":"prices.get"}`, result: `{"body":"hat","subject":"prices.get"}`}},
	"retry": {
		"- {id: check, step: 'let n = ( ${n} ?? 0 ) + 1'}\n- {step: EXAMPLE, condition: {target: '${n}', less-than: 3}}\n- return ${n}", flowRun{result: "3"},
	},
	"return":    {"- EXAMPLE\n- log never", flowRun{input: `{"result": [1]}`, result: "[1]"}},
	"set-state": {"- EXAMPLE\n- return ${state.count}", flowRun{input: `{"x": 4}`, result: "4"}},
	"shell":     {"- EXAMPLE", flowRun{answers: map[string]string{"shell": `{"stdout": "syslog", "exit_code": 0}`}, does: `shell {"command":"ls /var/log"}`, result: `{"exit_code":0,"stdout":"syslog"}`}},
	"signal":    {"- EXAMPLE\n- return sent", flowRun{input: `{"order": "receiver", "receipt": "r-1"}`, result: `"sent"`}},
	"sleep":     {"- EXAMPLE\n- return awake", flowRun{result: `"awake"`}},
	"ssh": {
		"- EXAMPLE", flowRun{
			input: `{"host": "web-1"}`, answers: map[string]string{"ssh": `{"stdout": "", "exit_code": 0}`}, does: `ssh {"command":"systemctl restart web","endpoint":"web-1"}`,
			result: `{"exit_code":0,"stdout":""}`,
		},
	},
	"subworkflow": {"- type: subworkflow\n  steps:\n  - let x = 1\n- return ${x}", flowRun{result: "1"}},
	"switch":      {"- step: EXAMPLE\n  cases:\n  - {step: return stop, condition: red}\n  - return go", flowRun{input: `{"colour": "red"}`, result: `"stop"`}},
	"transform":   {"- EXAMPLE\n- return ${x}", flowRun{input: `{"name": " ada "}`, result: `"ADA"`}},
	"wait":        {"- set-state address = here\n- EXAMPLE\n- return ${address}", flowRun{result: `"here"`}},
	"wait-for-signal": {
		"- EXAMPLE", flowRun{signals: map[string]string{"paid": `"r-2"`}, result: `"r-2"`},
	},
	"workflow": {"- EXAMPLE\n- return done", flowRun{result: `"done"`}},
}

// The example of every step type does what it says when it is run.
func TestFlowTypesRun(t *testing.T) {
	known := map[string]model.Type{}
	for _, typ := range model.Types() {
		known[typ.Name] = typ
		if _, ok := typeRuns[typ.Name]; !ok {
			t.Errorf("nothing runs the example of %s", typ.Name)
		}
	}
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		b := &bench{Env: e, flows: map[string]*model.Definition{}, answers: map[string]map[string]string{}, did: map[string][]string{}}
		deciders := e.Client.Deciders(nil)
		d := flow.New(b, &flow.Options{List: "main", Random: func() float64 { return 0.5 }})
		add := func(name, text string, answers map[string]string) {
			t.Helper()
			def, err := flow.Parse(name, []byte(text), nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			b.flows[name], b.answers[name] = def, answers
			deciders.Register(name, d)
		}
		add("ship-order", "- return shipped ${order}", nil)
		add("receiver", "- wait-for-signal paid", nil)
		for name, r := range typeRuns {
			typ, ok := known[name]
			if !ok || strings.Contains(r.flow, "EXAMPLE") == (typ.Example == "") && name != "no-op" {
				t.Fatalf("%s: there is no such type, or its run has not the example %q", name, typ.Example)
			}
			line, err := json.Marshal(typ.Example)
			if err != nil {
				t.Fatal(err)
			}
			add(name, "name: "+name+"\nsteps:\n"+strings.Replace(r.flow, "EXAMPLE", string(line), 1), r.answers)
		}
		e.Go(deciders, b.worker())
		receiver, err := b.Client.Start(t.Context(), "receiver", nil, &drover.StartOptions{ID: "receiver"})
		if err != nil {
			t.Fatal(err)
		}
		for name, r := range typeRuns {
			r.has = name
			b.run(t, name, r.flowRun)
		}
		if out := b.Wait(receiver); string(out.Result) != `"r-1"` {
			t.Errorf("the signal brought %s %s, want \"r-1\"", out.Status, out.Result)
		}
	})
}
