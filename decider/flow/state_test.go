package flow_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/internal/sample"
	"github.com/droverhq/drover/schemas"
)

// State keys are shared by all runs: a counter that two flows count up is exact, what is cleared is gone, a requirement that does not
// hold is an error of the step.
func TestStateKeysOfFlows(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		farm(t, e, map[string]string{
			"count": `
steps:
- let n = 0
- id: again
  step: let count = ${state.count} ?? 0
- let next = ${count} + 1
- step: set-state count = ${next}
  require: {any: [{when: absent}, {equals: "${count}"}]}
  on-error: goto again
- let n = ${n} + 1
- {step: goto again, condition: {target: "${n}", less-than: 10}}
- return ${n}
`,
			"read": `
steps:
- let before = ${entity.sensor.count}
- {step: log many, condition: {sensor: count, greater-than: 19}}
- step: set-state count = 0
  require: {less-than: 20}
  on-error: let failure = ${workflow.error.type}
- clear-state count
- let after = ${state.count} ?? gone
- set-sensor mine on here = ${before}
- {step: set-state big = x, on-error: 'let big = ${workflow.error.type}', require: {greater-than: 5}}
- return ${before} ${failure} ${after} ${big}
`,
		}, nil)
		for i := range 2 {
			start(t, e, "count", fmt.Sprint("c-", i), nil)
		}
		for i := range 2 {
			if out := e.Wait(e.Client.Run(fmt.Sprint("c-", i), "")); string(out.Result) != "10" {
				t.Fatalf("c-%d: got %v with %s %s", i, out.Status, out.Result, out.Details)
			}
		}
		if out := e.Wait(start(t, e, "read", "r-1", nil)); string(out.Result) != `"20 requirement gone requirement"` {
			t.Fatalf("got %v with %s %s\n%s", out.Status, out.Result, out.Details, e.History("r-1"))
		}
		if text := e.History("r-1").String(); strings.Count(text, "Marker log") != 1 {
			t.Errorf("the condition did not hold:\n%s", text)
		}
	})
}

// Parts of a state key are changed by many runs at once, and no change is lost.
func TestPartsOfAStateKeyOfFlows(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		farm(t, e, map[string]string{"all": `
steps:
- step: foreach n in 1..12
  concurrency: all
  steps:
  - set-state integer seen['n${n}'] = ${n}
  - set-state integer list[] = ${n}
  - {step: "clear-state seen['n${n}']", condition: {target: "${n}", greater-than: 2}}
- let list = ${state.list}
- transform sum = ${list} | sum
- step: set-state seen['n1'] = 5
  require: {less-than: 1}
  on-error: let failure = ${workflow.error.type}
- let seen = ${state.seen}
- type: return
  value: {seen: "${seen}", sum: "${sum}", failure: "${failure}"}
`}, nil)
		out := e.Wait(start(t, e, "all", "a-1", nil))
		if want := `{"failure":"requirement","seen":{"n1":1,"n2":2},"sum":78}`; string(out.Result) != want {
			t.Errorf("got %v with %s %s, want %s", out.Status, out.Result, out.Details, want)
		}
	})
}

// A0-6: the seed's way to try for a lock for a minute, by its key. Who waits gets it when the holder has ended; who has waited for a minute
// clears it by force. Within, a block with the lock enters.
func TestA06TryLockOfFlows(t *testing.T) {
	sample.OneOfEight(t)
	text, err := os.ReadFile("model/testdata/examples/try-lock.yaml")
	if err != nil {
		t.Fatal(err)
	}
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		farm(t, e, map[string]string{
			"try":  string(text),
			"hold": "lock: checking-first-example\nsteps: [sleep 1s]\n",
		}, nil)
		start(t, e, "hold", "h-1", nil)
		e.Sleep(100 * time.Millisecond)
		begin := time.Now()
		for _, id := range []string{"t-1", "t-2"} { // rivals
			start(t, e, "try", id, nil)
		}
		for _, id := range []string{"t-1", "t-2"} {
			out := e.Wait(e.Client.Run(id, ""))
			if out.Status != schemas.StatusCompleted {
				t.Fatalf("%s: got %v with %s", id, out.Status, out.Details)
			}
			text := e.History(id).String()
			if !strings.Contains(text, "LockAcquired") || !strings.Contains(text, "ChildSuccess") || strings.Contains(text, "StateCleared") {
				t.Errorf("%s has not got the lock in a fair way:\n%s", id, text)
			}
		}
		if took := time.Since(begin); took < 800*time.Millisecond || took > time.Minute {
			t.Errorf("the second rival waited for %v, want until the holder has ended, and no minute", took)
		}
		if out := e.Wait(e.Client.Run("h-1", "")); out.Status != schemas.StatusCompleted || strings.Contains(e.History("h-1").String(), "LockBroken") {
			t.Errorf("the holder: %v\n%s", out.Status, e.History("h-1"))
		}
	})
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		slow := strings.Replace(string(text), "backoff 10ms timeout 1m", "backoff 5s timeout 1m", 1)
		farm(t, e, map[string]string{"try": slow, "hold": "lock: checking-first-example\nsteps: [sleep 30 days]\n"}, nil)
		start(t, e, "hold", "h-1", nil)
		e.Sleep(100 * time.Millisecond)
		begin := time.Now()
		if out := e.Wait(start(t, e, "try", "t-1", nil)); out.Status != schemas.StatusCompleted {
			t.Fatalf("got %v with %s", out.Status, out.Details)
		}
		if took := time.Since(begin); took < 50*time.Second || took > 2*time.Minute {
			t.Errorf("cleared by force after %v, want a minute", took)
		}
		if text := e.History("h-1").String(); !strings.Contains(text, "LockBroken") {
			t.Errorf("the holder was not told:\n%s", text)
		}
	})
}
