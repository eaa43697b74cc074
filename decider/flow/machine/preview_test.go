package machine_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/run"
	"pgregory.net/rapid"
)

// Wherever a run stands when it ends, also by force: a preview says what the replay does, changes nothing, and refuses what that refuses. What
// was open in the old run is not waited for by the new one: everything that it waits for, it asks for itself.
func TestPreviewsAreTrue(t *testing.T) {
	p := part(t, compile(t, zoo), "")
	rapid.Check(t, func(t *rapid.T) {
		written := wander(t, p)
		o := machine.Origin{
			State: written, Force: rapid.Bool().Draw(t, "force"),
			From: rapid.SampledFrom([]string{"start", "last", "end", "0", "1", "2", "3", "4", "nowhere"}).Draw(t, "from"),
		}
		r, err := machine.Preview(p, o)
		if !bytes.Equal(written, o.State) {
			t.Fatal("the preview has changed the state")
		}
		s, actions, started := machine.Start(p, machine.Begin{Replay: &o}, begin, half)
		if started != nil {
			t.Fatalf("the replay cannot begin: %v", started)
		}
		// A failure with a step comes from a retry of the flow itself.
		refused := slices.ContainsFunc(actions, func(a machine.Action) bool {
			return a.Do == machine.Fail && a.Failure.Has(run.NameReplay) && a.Failure.Step == ""
		})
		f, said := errors.AsType[*run.Failure](err)
		switch {
		case err != nil && !said:
			t.Fatalf("the preview cannot be made: %v", err)
		case said && !f.Has(run.NameReplay):
			t.Fatalf("the preview refuses with %v", f)
		case said != refused:
			t.Fatalf("the preview says %v, and the replay does %+v", err, actions)
		case said:
			return
		}
		if r.From == "end" && (len(actions) != 1 || actions[0].Do != machine.Complete) {
			t.Fatalf("nothing is left to run, and the replay does %+v", actions)
		}
		asked := map[string]bool{}
		for _, a := range actions {
			asked[a.ID] = true
		}
		if w := s.Wait; w != nil && w.For != machine.SendSignal && w.For != machine.StartChild && !asked[w.ID] {
			t.Fatalf("the new run waits for %+v and has asked for %+v", w, actions)
		}
		if w := s.Wait; w != nil && w.For == machine.StartChild && !slices.ContainsFunc(actions, func(a machine.Action) bool { return strings.HasPrefix(a.ID, w.ID+"/") }) {
			t.Fatalf("the new run waits for children that it has not asked for: %+v, %+v", w, actions)
		}
	})
}

// wander runs a while and returns the state.
func wander(t *rapid.T, p *machine.Program) []byte {
	now := begin
	s, actions, err := machine.Start(p, machine.Begin{Input: map[string]any{"n": int64(5)}}, now, half)
	if err != nil {
		t.Fatal(err)
	}
	open, asked := map[string]machine.Action{}, map[string]bool{}
	for range rapid.IntRange(0, 40).Draw(t, "decisions") {
		for _, a := range actions {
			note(t, a, open, asked)
		}
		now = now.Add(time.Second)
		if actions, err = machine.Step(p, s, []machine.Input{draw(t, open)}, now, half); err != nil {
			t.Fatal(err)
		}
	}
	return mustEncode(t, s)
}

// replay begins a run. What a preview says of it must be true: it is refused, or not.
func (w *world) replay(o machine.Origin) string {
	if w.state == nil {
		return "there is no run\n"
	}
	p, err := w.flow.Program(w.decode().Program)
	if err != nil {
		return err.Error() + "\n"
	}
	_, refusal := machine.Preview(p, o)
	out := w.start(machine.Begin{Program: w.decode().Program, Replay: &o})
	if refused := strings.HasPrefix(out, "fail [not-replayable]"); refused != (refusal != nil) {
		w.t.Errorf("replay %s: the preview says %v, and it comes to\n%s", o.From, refusal, out)
	}
	return out
}

func (w *world) preview(o machine.Origin) string {
	p, err := w.flow.Program(w.decode().Program)
	if err != nil {
		return err.Error() + "\n"
	}
	before := w.show()
	r, err := machine.Preview(p, o)
	if w.show() != before {
		w.t.Error("a preview has changed the state")
	}
	if err != nil {
		return err.Error() + "\n"
	}
	var out strings.Builder
	out.WriteString("from " + r.From)
	if r.Resumes {
		out.WriteString(", within")
	}
	for _, s := range r.Again {
		out.WriteString("\nagain " + strings.Join(strings.Fields(strings.Join([]string{s.Ref, s.ID, s.Type}, " ")), " "))
		if s.Risky {
			out.WriteString(", risky")
		}
	}
	return out.String() + "\n"
}
