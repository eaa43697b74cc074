package alwayson

import (
	"errors"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

var midnight = time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)

func fresh(restart ops.RestartPolicy) *record {
	return &record{Incarnation: "i", AlwaysOn: ops.AlwaysOn{Start: schemas.StartRequest{WorkflowID: "w", Type: "t"}, Restart: restart}}
}

// S2-3: what follows each kind of end, under each policy.
func TestEachEndUnderEachPolicy(t *testing.T) {
	for _, c := range []struct {
		status           schemas.Status
		restart          ops.RestartPolicy
		finished, failed bool
	}{
		{schemas.StatusCompleted, ops.RestartAlways, false, false},
		{schemas.StatusCanceled, ops.RestartAlways, false, false},
		{schemas.StatusFailed, ops.RestartAlways, false, true},
		{schemas.StatusTimedOut, ops.RestartAlways, false, true},
		{schemas.StatusTerminated, ops.RestartAlways, false, true},
		{schemas.StatusCompleted, ops.RestartOnFailure, true, false},
		{schemas.StatusCanceled, ops.RestartOnFailure, true, false},
		{schemas.StatusFailed, ops.RestartOnFailure, false, true},
		{schemas.StatusTimedOut, ops.RestartOnFailure, false, true},
		{schemas.StatusTerminated, ops.RestartOnFailure, false, true},
	} {
		r := fresh(c.restart)
		r.begin("default", midnight)
		r.ends(&drover.Outcome{Status: c.status, Reason: "why"}, midnight.Add(time.Hour))
		if r.Open || r.rests() != c.finished || (r.Failures > 0) != c.failed || r.Status != c.status || r.EndReason != "why" {
			t.Errorf("%s under %s: got %+v, want it to rest: %t, to have failed: %t", c.status, c.restart, r, c.finished, c.failed)
		}
		if (r.NotBefore == 0) != c.finished {
			t.Errorf("%s under %s: the next run begins at %v, want a time unless it rests", c.status, c.restart, r.NotBefore)
		}
		if wait := r.NotBefore.Time().Sub(midnight.Add(time.Hour)); wait >= time.Second {
			t.Errorf("%s under %s: the next run waits for %v, want less than a second", c.status, c.restart, wait)
		}
	}
}

// S2-3: pauses double up to five minutes, ten failures in a row are failing, and a success or a long life begins anew.
func TestPauses(t *testing.T) {
	r, now := fresh(ops.RestartAlways), midnight
	fail := func(lives time.Duration) time.Duration {
		r.begin("default", now)
		now = now.Add(lives)
		r.ends(&drover.Outcome{Status: schemas.StatusFailed}, now)
		wait := r.NotBefore.Time().Sub(now)
		now = r.NotBefore.Time()
		return wait
	}
	for i, want := range []int{0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		if got := fail(apart); got != time.Duration(want)*time.Second || r.Failures != i+1 {
			t.Errorf("after failure %d: a pause of %v and %d failures, want %d s", i+1, got, r.Failures, want)
		}
	}
	if got := fail(lastPause - time.Second); got != lastPause || r.Failures != 13 {
		t.Errorf("a run that lived for less than the pause before it: got %v, %d failures, want %v, 13", got, r.Failures, lastPause)
	}
	if got := fail(lastPause); got != 0 || r.Failures != 1 {
		t.Errorf("a run that lived for longer than the pause before it: got %v, %d failures, want 0, 1", got, r.Failures)
	}
	fail(time.Second)
	r.begin("default", now)
	r.ends(&drover.Outcome{Status: schemas.StatusCompleted}, now.Add(time.Second))
	if r.Failures != 0 {
		t.Errorf("after a success: %d failures, want none", r.Failures)
	}
	r.begin("default", now)
	r.refuses(errors.New("no room"), now)
	if r.Failures != 1 || r.Refusal != "no room" || r.Open {
		t.Errorf("after a refused start: got %+v", r)
	}
	if wait := r.NotBefore.Time().Sub(now); wait != apart {
		t.Errorf("after a refused start the next one comes after %v, want %v", wait, apart)
	}
}

// Runs have ids of their own, also those of another incarnation and of another namespace.
func TestRunIDsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, incarnation := range []string{"a", "b"} {
		for _, space := range []string{"default", "other"} {
			r := fresh("")
			r.Incarnation = incarnation
			for range 3 {
				r.begin(subject.Namespace(space), midnight)
				if seen[r.Run] {
					t.Errorf("the run id %s comes twice", r.Run)
				}
				seen[r.Run] = true
			}
		}
	}
}

// What was stopped is no failure, and goes on when it is started, however its run ends meanwhile.
func TestStopAndStart(t *testing.T) {
	for _, status := range []schemas.Status{schemas.StatusCanceled, schemas.StatusTerminated} {
		r := fresh(ops.RestartOnFailure)
		r.begin("default", midnight)
		if !r.stop(&ops.AlwaysRequest{Identity: "me", Reason: "work on it"}, midnight) || r.stop(&ops.AlwaysRequest{}, midnight) {
			t.Fatal("a stop changes something, and a second one does not")
		}
		between := *r
		r.ends(&drover.Outcome{Status: status}, midnight)
		if !r.rests() || r.Failures != 0 {
			t.Errorf("stopped and %s: got %+v, want it to rest without a failure", status, r)
		}
		if !r.start() || r.rests() || r.NotBefore != 0 {
			t.Errorf("started again after its run was %s: got %+v, want it to begin at once", status, r)
		}
		if !between.start() || between.start() {
			t.Fatal("a start changes something, and a second one does not")
		}
		between.ends(&drover.Outcome{Status: status}, midnight)
		if between.rests() || between.Failures != 0 {
			t.Errorf("started again before its run was %s: got %+v, want it to go on", status, between)
		}
	}
}
