package docs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider/flow"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// flowRun is how an example of the page is run, and what comes of it.
type flowRun struct {
	has     string // a line that no other example has
	input   string
	signals map[string]string // what the run is sent once it waits
	uses    string            // of a step type: the flow that uses it
	logs    string            // what it writes into its log, one a line
	does    string            // the activities, one a line, those of loops too
	answers map[string]string // of activities, by type; else they return their input
	result  string
}

var flowRuns = []flowRun{
	{
		has: "description: Makes a machine for a team.", input: `{"team": "red", "disks": ["a", "b"]}`, signals: map[string]string{"approve": "true"},
		does: "create-vm {\"size\":2}\nattach {\"disk\":\"a\"}\nattach {\"disk\":\"b\"}", result: `{"size":2}`,
	},
	{has: "name: hello", logs: "hello"},
	{has: "description: Who pays for it.", input: `{"team": "red", "owner": "Ada"}`, logs: "red gets 2"},
	{has: "account-${account}", input: `{"account": "7"}`, does: `book {"account":"7"}`, result: `{"account":"7"}`},
	{has: "hash start-stop"},
	{has: "- log one line", input: `{"count": 1, "x": 5, "more": false}`, logs: "one line\na map\na block\nover the next one\nat last"},
	{
		has: "- type: switch", input: `{"colour": "green", "count": 1, "disks": [{"name": "a", "size": 1}, {"name": "b", "size": 2}], "y": "/var", "me": "Ada"}`,
		signals: map[string]string{"paid": `"receipt"`},
		logs:    "go", does: "attach {\"name\":\"a\",\"size\":1}\nattach {\"name\":\"b\",\"size\":2}\nshell {\"command\":\"ls /var\"}", result: `"receipt"`,
	},
	{
		has: "id: install", uses: "steps:\n- install jq from backports\n",
		does: `ssh {"command":"apt-get install -y jq"}`, result: `"jq of backports"`,
	},
	{has: "- let integer count", input: `{"count": 1, "size": 11, "small": false, "begin": "30m", "anything": 1}`},
	{has: "- let list sizes", input: `{"size": "x, y", "card": "c\"1", "street": "Mill Lane: 1"}`, logs: "x, y c\"1 Mill Lane: 1"},
	{has: "- id: ask", input: `{"account": "7"}`, does: `book {"account":"7"}`, result: `"full at 1 for 7 of example-10"`},
	{has: "transform names", input: `{"line": "a,b", "prices": [1, 2.5], "response": "{\"items\": [{\"name\": \" x \"}]}"}`},
	{
		has: "- transform list", input: `{"line": "Ant,Bee", "prices": [1, 2, 6], "template": "${line}!"}`, result: "3",
	},
	{
		has: "- set-state owner = Ada", input: `{"order": {"size": 8, "lines": ["ant", "box"]}}`,
		logs: "equals\nfrom to\nan element\nthe last one\none that fits\na path\na type\na check\na state key\nthe same\nan input\nan error",
	},
	{has: "log a middling order", input: `{"order": {"size": 8}}`, logs: "a middling order", does: "charge"},
	{
		has: "name: order", input: `{"items": [1], "amount": 5}`, logs: "ready to charge",
		does: "reserve {\"items\":[1]}\ncharge {\"amount\":5}", result: `{"amount":5}`,
	},
	{
		has: "min(10, max(1, 50%))", input: `{"hosts": ["a", "b"]}`,
		does:   "ssh {\"command\":\"uptime\",\"endpoint\":\"a\"}\nssh {\"command\":\"uptime\",\"endpoint\":\"b\"}",
		result: `[{"command":"uptime","endpoint":"a"},{"command":"uptime","endpoint":"b"}]`,
	},
	{
		has: "username: shop", input: `{"password": "open sesame"}`,
		answers: map[string]string{"http": `{"status_code": 200}`, "load": `"a: 1"`, "shell": `{"stdout": "plenty", "exit_code": 0}`},
		does: `http {"config":{"redirects":2,"timeout":"10s"},"expect":[200],"password":"open sesame","url":"https://api.example.com/orders?state=open","username":"shop"}` + "\n" +
			`load {"url":"https://api.example.com/prices.yaml"}` + "\n" + `shell {"command":"df -h \"$WHERE\"","env":{"WHERE":"/var"}}` + "\n" +
			`publish {"body":"plenty","subject":"shop.sold"}`,
		result: `{"body":"plenty","subject":"shop.sold"}`,
	},
	{has: "three is bad", result: `["1 of 4","3 of 4","4 of 4"]`},
}

// Every example of the page does what it says when it is run as it is written.
func TestFlowExamplesRun(t *testing.T) {
	examples := map[string]string{}
	for _, e := range fenced.FindAllStringSubmatch(read(t, flows), -1) {
		found := 0
		for _, r := range flowRuns {
			if strings.Contains(e[1], r.has) {
				examples[r.has] = e[1]
				found++
			}
		}
		if found != 1 {
			t.Errorf("%d entries of flowRuns are about the example, want one:\n%s", found, e[1])
		}
	}
	if len(examples) != len(flowRuns) || t.Failed() {
		t.Fatalf("%d examples are run, of %d entries", len(examples), len(flowRuns))
	}
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		b := &bench{Env: e, flows: map[string]*model.Definition{}, answers: map[string]map[string]string{}, did: map[string][]string{}}
		deciders := e.Client.Deciders(nil)
		d := flow.New(b, &flow.Options{List: "main", Random: func() float64 { return 0.5 }})
		for i, r := range flowRuns {
			name := fmt.Sprint("example-", i)
			b.answers[name] = r.answers
			b.put(t, name, examples[r.has], r)
			deciders.Register(name, d)
		}
		e.Go(deciders, b.worker())
		for i, r := range flowRuns {
			b.run(t, fmt.Sprint("example-", i), r)
		}
	})
}

// bench is where examples run: a store of them, and what their activities did, by the run at the root.
type bench struct {
	*drovertest.Env
	flows   map[string]*model.Definition
	answers map[string]map[string]string // of activities, by flow and type

	mu  sync.Mutex
	did map[string][]string
}

// put stores an example.
func (b *bench) put(t *testing.T, name, text string, r flowRun) {
	t.Helper()
	known := map[string]*model.Definition{}
	o := &flow.ParseOptions{Types: func(name string) (*model.Definition, bool) { d, ok := known[name]; return d, ok }}
	d, err := flow.Parse(flows, []byte(text), o)
	if err == nil && r.uses != "" {
		known[d.ID] = d
		d, err = flow.Parse(flows, []byte(r.uses), o)
	}
	if err != nil {
		t.Fatalf("%s: %v", r.has, err)
	}
	b.flows[name] = d
}

func (b *bench) Definition(_ context.Context, _, name, _ string) (*model.Definition, string, error) {
	d := b.flows[name]
	if d == nil {
		return nil, "", fmt.Errorf("%w: %s", flow.ErrNoDefinition, name)
	}
	return d, d.Version(), nil
}

// worker does what the examples ask for: each activity returns its input.
func (b *bench) worker() *activity.Worker {
	w := b.Client.Activities(&activity.Options{Lists: []string{"main", ops.ServiceList}})
	for _, name := range []string{"create-vm", "attach", "book", "charge", "reserve", "shell", "ssh", "http", "load", "publish", "request", "container", ops.ActivityOnce} {
		activity.Register(w, name, func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
			run, err := b.Client.Run(activity.Info(ctx).WorkflowID, "").Describe(ctx)
			if err != nil {
				return nil, err
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			b.did[run.Execution.Type] = append(b.did[run.Execution.Type], strings.TrimSpace(name+" "+string(in)))
			if answer := b.answers[run.Execution.Type][name]; answer != "" {
				return json.RawMessage(answer), nil
			}
			return in, nil
		})
	}
	return w
}

func (b *bench) run(t *testing.T, name string, r flowRun) {
	t.Helper()
	var input any
	if r.input != "" {
		input = json.RawMessage(r.input)
	}
	run, err := b.Client.Start(t.Context(), name, input, &drover.StartOptions{ID: name})
	if err != nil {
		t.Fatal(err)
	}
	for signal, value := range r.signals {
		b.Sleep(time.Minute)
		if err := run.Signal(t.Context(), signal, json.RawMessage(value)); err != nil {
			t.Fatal(err)
		}
	}
	out := b.Wait(run)
	if out.Status != schemas.StatusCompleted || string(out.Result) != r.result {
		t.Errorf("%s: got %s with %q %s %s, want completed with %q", r.has, out.Status, out.Result, out.Reason, out.Details, r.result)
	}
	var logs []string
	for _, e := range b.History(name) {
		if a, ok := e.Attributes.(*schemas.Marker); ok && a.MarkerName == flow.MarkerLog {
			var line struct{ Text string }
			if err := json.Unmarshal(a.Details, &line); err != nil {
				t.Fatal(err)
			}
			logs = append(logs, line.Text)
		}
	}
	if diff := cmp.Diff(r.logs, strings.Join(logs, "\n")); diff != "" {
		t.Errorf("%s: the log (-want +got):\n%s", r.has, diff)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if diff := cmp.Diff(r.does, strings.Join(b.did[name], "\n")); diff != "" {
		t.Errorf("%s: its activities (-want +got):\n%s", r.has, diff)
	}
}
