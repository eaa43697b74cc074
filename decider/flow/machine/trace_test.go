package machine_test

import (
	"testing"

	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/google/go-cmp/cmp"
)

// Who looks on sees lines of the log where they are written, and not after the steps of the whole decision.
func TestTraceKeepsLinesOfTheLogInTheirPlace(t *testing.T) {
	var got []string
	trace := func(ref string, did run.Did, output any, f *run.Failure) {
		line, _ := output.(machine.Action)
		switch {
		case did == run.Logged && ref == "":
			got = append(got, line.Level+" "+line.Text)
		case did != run.Began:
			got = append(got, ref+" "+string(did))
		}
	}
	p := part(t, compile(t, "- log before\n- let x = 1\n- {type: log, message: 'x is ${x}', level: warn}\n- fail message broken"), "")
	if _, _, err := machine.Start(p, machine.Begin{Trace: trace}, begin, half); err != nil {
		t.Fatal(err)
	}
	want := []string{"info before", "0 ended", "1 ended", "warn x is 1", "2 ended", "3 failed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A retry has ended when it goes back.
func TestTraceTellsTheEndOfARetry(t *testing.T) {
	var got []string
	trace := func(ref string, did run.Did, _ any, _ *run.Failure) { got = append(got, ref+" "+string(did)) }
	p := part(t, compile(t, "- {id: a, step: no-op}\n- {step: fail message broken, on-error: [retry from a limit 1]}"), "")
	if _, _, err := machine.Start(p, machine.Begin{Trace: trace}, begin, half); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"0 began", "0 ended", "1 began", "1 failed", "1.on-error.0 began", "1.on-error.0 ended",
		"0 began", "0 ended", "1 began", "1 failed", "1.on-error.0 began", "1.on-error.0 failed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
