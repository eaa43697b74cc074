package run_test

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/decider/flow/run"
	"github.com/google/go-cmp/cmp"
)

// loop is a run in a loop over texts, of which some children are done, one is open and one failed.
func loop() *run.State {
	var targets []any
	inst := &run.Instance{N: 1, Phase: run.InBody, Many: true, Width: 3}
	for i := range 60 {
		c := &run.Child{Index: i, Target: run.Value{V: strings.Repeat("t", i)}}
		switch {
		case i < 20:
			c.Status, c.Output = run.ChildDone, run.Value{V: int64(i)}
		case i == 20:
			c.Status = run.Open
		case i == 21:
			c.Status, c.Fault = run.ChildFailed, run.NewFailure(run.NameTimeout, "late")
		}
		targets, inst.Children = append(targets, c.Target.V), append(inst.Children, c)
	}
	inst.RunsOver(targets)
	return &run.State{
		Status: run.Running, Input: run.Value{V: map[string]any{"text": strings.Repeat("x", 4096)}},
		Stack:   []run.Frame{{Kind: run.Steps}},
		Records: map[string]*run.Record{"0": {Started: 1, Last: inst}},
		Wait:    &run.Wait{For: "child", ID: "0#1"},
	}
}

// children are those of the loop, as a text each.
func children(s *run.State) []string {
	var all []string
	for _, c := range s.Records["0"].Last.Children {
		text := c.Status + " " + c.Target.V.(string)
		if c.Fault != nil {
			text += " " + c.Fault.Message
		}
		if c.Output.V != nil {
			text += " with output"
		}
		all = append(all, text)
	}
	return all
}

func TestStateIsReadAsItWasWritten(t *testing.T) {
	s := loop()
	data, err := run.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	got, err := run.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(children(s), children(got)); diff != "" {
		t.Errorf("children: -want +got\n%s", diff)
	}
	if !got.Input.Equal(s.Input) || got.Wait.ID != s.Wait.ID {
		t.Errorf("got input %v and wait %+v", got.Input, got.Wait)
	}
}

func TestLeanStateNeedsWhatStandsInTheHistory(t *testing.T) {
	s := loop()
	if _, fresh, err := run.EncodeLean(s); err != nil || len(fresh) > 0 {
		t.Fatalf("got %d values apart and %v of the first state", len(fresh), err)
	}
	data, fresh, err := run.EncodeLean(s)
	if err != nil || len(fresh) == 0 || !run.Named(data) {
		t.Fatalf("got %d values apart and %v of a state with a large value", len(fresh), err)
	}
	if _, err := run.Decode(data); err == nil || !strings.Contains(err.Error(), "stands in its history") {
		t.Errorf("without the values: got %v", err)
	}
	got, err := run.DecodeLean(data, fresh)
	if err != nil || !got.Input.Equal(s.Input) {
		t.Fatalf("got input %v and %v", got.Input, err)
	}
	if !got.Lacks(run.All) {
		t.Error("outputs that stand in the history are not missed")
	}
	got.FillFrom(s)
	if diff := cmp.Diff(children(s), children(got)); diff != "" {
		t.Errorf("children once filled in: -want +got\n%s", diff)
	}
}

func TestFailureHasTheNamesOfItsCauses(t *testing.T) {
	f := run.NewFailure(run.NameChild, "all of it").Because(run.NewFailure(run.NameTimeout, "late"))
	for name, want := range map[string]bool{run.NameChild: true, run.NameTimeout: true, run.NameLimit: false} {
		if f.Has(name) != want {
			t.Errorf("%s: got %v, want %v", name, !want, want)
		}
	}
}
