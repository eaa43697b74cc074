package machine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/google/go-cmp/cmp"
)

// What a retry may come to in the flow of the test, as it is seen from outside. The variable v tells which variables were used: 12 are
// those of the first time, more is what the step before the retry has made of them.
const (
	resumes    = "schedule 4#1.1 work V12"               // the step that failed goes on
	fromPoint  = "replay-point 2\nschedule 4#2 work V12" // a replay from the only point
	gotoMid    = "schedule 4#2 work V110"                // a jump
	gotoStart  = "log info begin\nreplay-point 2\nschedule 4#2 work V112"
	gotoEnd    = "complete"
	forceMid   = "schedule 4#2 work V12"
	forceStart = "log info begin\nreplay-point 2\nschedule 4#2 work V12"
	noPoint    = "[not-replayable]"
	noStep     = "there is no step with the id last"
	warned     = "log warn retry from end at step 6 is in no handler: it goes to the last replay point\n" + fromPoint
)

// A0-14: each cell of the table of what a retry does, by replay and next: in the handler of a step that may run twice, in that of one
// that may not, and in no handler.
func TestRetryTable(t *testing.T) {
	for _, row := range []struct {
		replay, next           string
		may, mayNot, noHandler string
	}{
		{"", "", resumes, fromPoint, fromPoint},
		{"", "mid", gotoMid, gotoMid, gotoMid},
		{"", "start", gotoStart, gotoStart, gotoStart},
		{"", "last", fromPoint, fromPoint, fromPoint}, // no step can have the id last
		{"", "end", gotoEnd, gotoEnd, gotoEnd},
		{"false", "mid", gotoMid, gotoMid, gotoMid},
		{"false", "start", gotoStart, gotoStart, gotoStart},
		{"false", "last", noStep, noStep, noStep},
		{"false", "end", gotoEnd, gotoEnd, gotoEnd},
		{"true", "", fromPoint, fromPoint, fromPoint},
		{"true", "mid", fromPoint, fromPoint, fromPoint},
		{"true", "start", noPoint, noPoint, noPoint},
		{"true", "last", fromPoint, fromPoint, fromPoint},
		{"true", "end", resumes, fromPoint, warned},
		{"force", "", fromPoint, fromPoint, fromPoint},
		{"force", "mid", forceMid, forceMid, forceMid},
		{"force", "start", forceStart, forceStart, forceStart},
		{"force", "last", fromPoint, fromPoint, fromPoint},
		{"force", "end", resumes, resumes, warned},
	} {
		retry := "{type: retry, limit: 1"
		if row.replay != "" {
			retry += ", replay: '" + row.replay + "'"
		}
		if row.next != "" {
			retry += ", next: " + row.next
		}
		retry += "}"
		for in, want := range map[string]string{"may": row.may, "may not": row.mayNot, "no handler": row.noHandler} {
			t.Run(fmt.Sprintf("replay %q next %q %s", row.replay, row.next, in), func(t *testing.T) {
				got := strings.ReplaceAll(retried(t, in, retry), `{"v":`, "V")
				got = strings.ReplaceAll(strings.ReplaceAll(got, "}", ""), " idempotent=true", "")
				if want == noPoint || want == noStep {
					if !strings.Contains(got, want) || !strings.HasPrefix(got, "fail ") {
						t.Errorf("got %s, want a failure with %s", got, want)
					}
					return
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		}
	}
}

// retried runs to the retry and shows what it does.
func retried(t *testing.T, in, retry string) string {
	text := `
steps:
- log begin
- let v = ( ${v} ?? 0 ) + 1
- {id: point, step: 'let v = ${v} + 1', replayable: from here}
- {id: mid, step: 'let v = ${v} + 10'}
- step: activity work with v = ${v}
  idempotent: %s
  on-error: [let v = 100, no-op, %s]
- log done
`
	answer := machine.Input{Kind: machine.Failed, ID: "4#1", Failure: run.NewFailure("broke", "no")}
	switch in {
	case "may":
		text = fmt.Sprintf(text, "yes", retry)
	case "may not":
		text = fmt.Sprintf(text, "no", retry)
	default:
		before, _, _ := strings.Cut(text, "  idempotent")
		text = before + "- let v = 100\n- " + retry + "\n- log done\n"
		answer = machine.Input{Kind: machine.Result, ID: "4#1"}
	}
	p := part(t, compile(t, text), "")
	s, _, err := machine.Start(p, machine.Begin{}, begin, half)
	if err != nil {
		t.Fatal(err)
	}
	actions, err := machine.Step(p, s, []machine.Input{answer}, begin, half)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, a := range actions {
		lines = append(lines, shown(a))
	}
	return strings.Join(lines, "\n")
}
