package machine_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/decider/flow/value"
	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write what happens into the scripts")

// The scripts in testdata/runs. A script has blocks: a command with its text, a line of four dashes, and everything that happened.
//
//	flow [KEY]            the definition (YAML below); type for a registered step type
//	start [part=KEY] [JSON]   a run begins
//	result ID [JSON]      an activity, child or state request has succeeded; failed ID NAME MESSAGE [{JSON}]: it has not
//	fired ID              a timer; the clock goes on to when it is due
//	granted, broken       the lock
//	refused ID            the requirement of a write
//	signal NAME [JSON]    somebody sends it
//	advance D             the clock goes on
//	stop                  somebody asks the run to end
//	replay FROM [force]   the run has ended, or was ended by force; a new one repeats it
//	preview FROM [force]  what that would run
//	state                 shows it
//
// Between any two commands the state is written and read; doing without must make no difference.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/runs/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d scripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := (&world{t: t}).script(string(text))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(text), got); diff != "" {
				t.Errorf("run with -rewrite and look at the difference (-want +got):\n%s", diff)
			}
		})
	}
}

// The scripts have a case for each requirement that the steps of a run have to meet.
func TestRequirementsHaveScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/runs/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, number := range []string{"A0-5", "A0-6", "A0-7", "A0-8", "A0-9", "A0-10", "A0-11", "A0-12", "A0-14", "A0-17"} {
		if !strings.Contains(all.String(), number) {
			t.Errorf("no script has a case for %s", number)
		}
	}
}

// world is where a run of a script lives.
type world struct {
	t      *testing.T
	types  map[string]*model.Definition
	flow   *machine.Flow
	p      *machine.Program
	state  []byte
	now    time.Time
	timers map[string]time.Time
	runs   int
}

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func (w *world) script(text string) string {
	var out strings.Builder
	for block := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n\n") {
		if !strings.Contains(block, "\n----") { // a comment
			out.WriteString(block + "\n\n")
			continue
		}
		command, _, _ := strings.Cut(block, "\n----")
		line, body, _ := strings.Cut(command, "\n")
		out.WriteString(command + "\n----\n" + w.command(line, body) + "\n")
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func (w *world) command(line, body string) string {
	verb, rest, _ := strings.Cut(line, " ")
	id, rest2, _ := strings.Cut(rest, " ")
	switch verb {
	case "flow":
		return w.define(body)
	case "type":
		d, err := model.Parse("", []byte(body), &model.Options{StepType: true})
		if err != nil {
			return err.Error() + "\n"
		}
		if w.types == nil {
			w.types = map[string]*model.Definition{}
		}
		w.types[d.ID] = d
		return "ok\n"
	case "start":
		part := ""
		if key, ok := strings.CutPrefix(id, "part="); ok {
			part = key
		} else {
			rest2 = rest
		}
		b := machine.Begin{Program: part, Input: w.mapping(rest2)}
		if vars, ok := b.Input["$vars"]; ok {
			b.Vars = vars.(map[string]any)
			delete(b.Input, "$vars")
		}
		if all, ok := b.Input["$all"]; ok { // a flow around it is idempotent
			b.IdempotentAll = all == true
			delete(b.Input, "$all")
		}
		return w.start(b)
	case "replay":
		return w.replay(machine.Origin{State: w.state, From: id, Force: rest2 == "force"})
	case "preview":
		return w.preview(machine.Origin{State: w.state, From: id, Force: rest2 == "force"})
	case "result":
		return w.step(machine.Input{Kind: machine.Result, ID: id, Value: w.value(rest2)})
	case "reduced":
		return w.step(machine.Input{Kind: machine.Result, ID: id, Reduced: w.mapping(rest2)})
	case "failed":
		name, message, _ := strings.Cut(rest2, " ")
		message, fields, given := strings.Cut(message, " {")
		f := run.NewFailure(name, message)
		if given {
			f.Fields = run.Value{V: w.value("{" + fields)}
		}
		return w.step(machine.Input{Kind: machine.Failed, ID: id, Failure: f})
	case "refused":
		return w.step(machine.Input{Kind: machine.Refused, ID: id})
	case "fired":
		if at, ok := w.timers[id]; ok && at.After(w.now) {
			w.now = at
		}
		return w.step(machine.Input{Kind: machine.Fired, ID: id})
	case "granted":
		return w.step(machine.Input{Kind: machine.Granted, ID: "lock"})
	case "broken":
		return w.step(machine.Input{Kind: machine.Broken, ID: "lock"})
	case "stop":
		return w.step(machine.Input{Kind: machine.Stop})
	case "again":
		return w.step()
	case "signal":
		return w.step(machine.Input{Kind: machine.Signal, Name: id, Value: w.value(rest2)})
	case "advance":
		d, err := time.ParseDuration(id)
		if err != nil {
			return err.Error() + "\n"
		}
		w.now = w.now.Add(d)
		return ""
	case "state":
		return w.show()
	}
	return "there is no command " + verb + "\n"
}

func (w *world) define(body string) string {
	w.flow, w.state = nil, nil
	d, err := model.Parse("", []byte(body), &model.Options{Types: func(name string) (*model.Definition, bool) { d, ok := w.types[name]; return d, ok }})
	if err == nil {
		w.flow, err = machine.Compile(d)
	}
	if err != nil {
		return err.Error() + "\n"
	}
	return "ok\n"
}

func (w *world) value(text string) any {
	if text == "" {
		return nil
	}
	v, err := value.Decode([]byte(text), value.Limits{})
	if err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
	return v
}

func (w *world) mapping(text string) map[string]any {
	m, _ := w.value(text).(map[string]any)
	return m
}

func (w *world) decode() *run.State {
	if w.state == nil {
		return &run.State{}
	}
	s, err := run.Decode(w.state)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// half is the dice of the scripts.
func half() float64 { return 0.5 }

func (w *world) start(b machine.Begin) string {
	if b.Replay == nil {
		w.now = begin
	}
	w.runs++
	b.ID, b.Task = fmt.Sprintf("wf-%d", w.runs), fmt.Sprintf("run-%d", w.runs)
	w.timers = map[string]time.Time{}
	if w.flow == nil {
		return "there is no flow\n"
	}
	p, err := w.flow.Program(b.Program)
	if err != nil {
		return err.Error() + "\n"
	}
	w.p = p
	s, actions, err := machine.Start(p, b, w.now, half)
	if err != nil {
		return err.Error() + "\n"
	}
	return w.happened(s, actions)
}

func (w *world) step(inputs ...machine.Input) string {
	s := w.decode()
	if w.state == nil {
		return "there is no run\n"
	}
	actions, err := machine.Step(w.p, s, inputs, w.now, half)
	if err != nil {
		return err.Error() + "\n"
	}
	return w.happened(s, actions)
}

// happened shows actions and encodes the state, twice: what is read must be written the same.
func (w *world) happened(s *run.State, actions []machine.Action) string {
	data, err := run.Encode(s)
	if err != nil {
		w.t.Fatal(err)
	}
	w.state = data
	again, err := run.Encode(w.decode())
	if err != nil {
		w.t.Fatal(err)
	}
	if !bytes.Equal(data, again) {
		w.t.Errorf("a state is written in two ways:\n%s\n%s", data, again)
	}
	var out strings.Builder
	for _, a := range actions {
		switch a.Do {
		case machine.StartTimer:
			w.timers[a.ID] = w.now.Add(a.Delay)
		case machine.CancelTimer:
			delete(w.timers, a.ID)
		}
		out.WriteString(shown(a) + "\n")
	}
	if len(actions) == 0 {
		return "nothing\n"
	}
	return out.String()
}

// shown is one line for an action.
func shown(a machine.Action) string {
	parts := []string{string(a.Do)}
	add := func(name string, v any, given bool) {
		if !given {
			return
		}
		text, ok := v.(string)
		if !ok {
			data, err := value.Encode(v)
			if err != nil {
				data, _ = json.Marshal(v)
			}
			text = string(data)
		}
		if name != "" {
			text = name + "=" + text
		}
		parts = append(parts, text)
	}
	add("", a.ID, a.ID != "" && a.ID != "end" && a.ID != "lock")
	add("", a.Name, a.Name != "")
	add("list", a.List, a.List != "")
	add("run", a.Run, a.Run != "")
	add("scope", a.Scope, a.Scope != "")
	add("limit", int64(a.Limit), a.Limit != 0)
	add("", a.Delay.String(), a.Do == machine.StartTimer)
	add("idempotent", a.Idempotent, a.Do == machine.Schedule && a.Idempotent)
	add("only", a.Only, a.Only)
	add("", a.Level, a.Level != "")
	add("category", a.Category, a.Category != "")
	add("", a.Text, a.Text != "")
	add("hash", a.Hash, a.Hash != "")
	add("", a.Value, a.Value != nil)
	add("require", a.Require, a.Require != nil)
	for _, name := range slices.Sorted(maps.Keys(a.Labels)) {
		add(name, a.Labels[name], true)
	}
	if a.Child != nil {
		add("part", a.Child.Program, a.Child.Program != "")
		add("input", any(a.Child.Input), len(a.Child.Input) > 0)
		add("vars", any(a.Child.Vars), len(a.Child.Vars) > 0)
		add("reducing", strings.Join(a.Child.Reducing, ","), a.Child.Reducing != nil)
		add("idempotent", "all", a.Child.IdempotentAll)
		if r := a.Child.Replay; r != nil {
			add("resume", r.From, true)
		}
	}
	add("reduced", any(a.Reduced), a.Reduced != nil)
	for f := a.Failure; f != nil; f = f.Cause {
		parts = append(parts, fmt.Sprintf("[%s] %s", strings.Join(f.Names, " "), f.Message))
		add("at", f.Step, f.Step != "")
		add("fields", f.Fields.V, f.Fields.V != nil)
	}
	return strings.Join(parts, " ")
}

func (w *world) show() string {
	s := w.decode()
	var out strings.Builder
	vars, err := value.Encode(s.Vars.V)
	if err != nil {
		w.t.Fatal(err)
	}
	prev, err := value.Encode(s.Prev.V)
	if err != nil {
		w.t.Fatal(err)
	}
	fmt.Fprintf(&out, "%s at=%s last=%s points=%s from-start=%v\nvars=%s output=%s\n", s.Status, s.At, s.Last, strings.Join(s.Points, ","), s.FromStart, vars, prev)
	for _, key := range slices.Sorted(maps.Keys(s.Retries)) {
		fmt.Fprintf(&out, "retries of %s: %d\n", key, s.Retries[key].Count)
	}
	return out.String()
}
