package machine_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A state that is written and read before each decision leads to the same decisions as one that stays in memory; ids are unique; what
// is not waited for changes nothing; a run that has ended does nothing more.
func TestWrittenAndRead(t *testing.T) {
	p := part(t, compile(t, zoo), "")
	rapid.Check(t, func(t *rapid.T) {
		now, dice := begin, rapid.Float64Range(0, 0.999)
		first := map[string]any{}
		if rapid.Bool().Draw(t, "five") {
			first["n"] = int64(5)
		}
		kept, actions, err := machine.Start(p, machine.Begin{Input: first}, now, half)
		if err != nil {
			t.Fatal(err)
		}
		written := mustEncode(t, kept)
		open := map[string]machine.Action{}
		asked := map[string]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "decisions") {
			for _, a := range actions {
				note(t, a, open, asked)
			}
			in := draw(t, open)
			now = now.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "seconds")) * time.Second)
			number := dice.Draw(t, "dice")
			random := func() float64 { return number }
			ended := kept.Status.Ended()
			if actions, err = machine.Step(p, kept, []machine.Input{in}, now, random); err != nil {
				t.Fatal(err)
			}
			s, err := run.Decode(written)
			if err != nil {
				t.Fatal(err)
			}
			again, err := machine.Step(p, s, []machine.Input{in}, now, random)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(actions, again); diff != "" {
				t.Fatalf("after %+v (-kept in memory +read):\n%s", in, diff)
			}
			before := written
			written = mustEncode(t, kept)
			if other := mustEncode(t, s); !bytes.Equal(written, other) {
				t.Fatalf("after %+v the states differ:\n%s\n%s", in, written, other)
			}
			if strings.HasPrefix(in.ID, "stray") && !bytes.Equal(before, written) {
				t.Fatalf("a stray answer has changed the state:\n%s\n%s", before, written)
			}
			if ended && (len(actions) != 1 || actions[0].ID != "end") {
				t.Fatalf("a run that has ended does %+v", actions)
			}
		}
	})
}

func mustEncode(t *rapid.T, s *run.State) []byte {
	data, err := run.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// note keeps what waits for an answer. No activity or child is asked for twice under one id.
func note(t *rapid.T, a machine.Action, open map[string]machine.Action, asked map[string]bool) {
	switch a.Do {
	case machine.Schedule, machine.StartChild:
		if asked[a.ID] {
			t.Fatalf("%s is asked for twice", a.ID)
		}
		asked[a.ID] = true
		open[a.ID] = a
	case machine.StartTimer, machine.ReadState, machine.WriteState, machine.ClearState:
		open[a.ID] = a
	case machine.CancelTimer, machine.CancelWork, machine.CancelChild:
		delete(open, a.ID)
	}
}

// draw makes up what comes in next.
func draw(t *rapid.T, open map[string]machine.Action) machine.Input {
	kinds := []string{"stray", "go", "approve", "stop", "broken"}
	for id := range open {
		kinds = append(kinds, "answer "+id)
	}
	if len(open) > 0 && rapid.IntRange(0, 9).Draw(t, "likely") > 0 {
		kinds = kinds[5:]
	}
	slices.Sort(kinds)
	what := rapid.SampledFrom(kinds).Draw(t, "what")
	switch what {
	case "stray":
		return machine.Input{Kind: machine.Result, ID: "stray#1"}
	case "go", "approve":
		return machine.Input{Kind: machine.Signal, Name: what, Value: rapid.Bool().Draw(t, "yes")}
	case "stop":
		return machine.Input{Kind: machine.Stop}
	case "broken":
		return machine.Input{Kind: machine.Broken}
	}
	id := strings.TrimPrefix(what, "answer ")
	a := open[id]
	delete(open, id)
	in := machine.Input{Kind: machine.Result, ID: id}
	switch outcome := rapid.IntRange(0, 5).Draw(t, "outcome"); {
	case a.Do == machine.StartTimer:
		in.Kind = machine.Fired
	case outcome == 0 && a.Do == machine.WriteState:
		in.Kind = machine.Refused
	case outcome <= 1 && a.Do != machine.ReadState:
		in.Kind, in.Failure = machine.Failed, run.NewFailure("broke", "try again")
	case outcome == 2 && a.Do == machine.Schedule:
		in.Kind, in.Failure = machine.Failed, run.NewFailure(run.NameInterrupted, "lost")
	default:
		in.Value = rapid.SampledFrom([]any{nil, int64(1), int64(5), "text", map[string]any{"a": int64(1)}, []any{"x"}}).Draw(t, "value")
	}
	return in
}
