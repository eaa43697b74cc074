package broker_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

var referenceResult = map[string]string{
	"measure": fmt.Sprintf("succeeded %d", pad), "once": `succeeded "ran"`, "flaky": `succeeded "good"`, "slow": "canceled", "kid": `"grown"`,
}

// want checks that the world looks as if nothing had happened. interrupted says that the activity which must not run twice
// may have been cut off.
func (r *reference) want(result map[string]string, interrupted bool) {
	r.t.Helper()
	r.over.Store(true)
	time.Sleep(30 * time.Second) // what is late comes in, what is open is closed
	want := maps.Clone(referenceResult)
	if got := result["once"]; interrupted && got == "failed interrupted" {
		want["once"] = got
	}
	if !maps.Equal(result, want) {
		r.t.Errorf("result %v, want %v", result, want)
	}
	if n := r.once.Load(); n > 1 || n == 0 && !interrupted {
		r.t.Errorf("the activity that must not run twice ran %d times", n)
	}
	r.wantHistories()
	for _, d := range r.letters() {
		if d.Reason != "late-decision" && d.Reason != "stale-token" && d.Reason != "closed-activity" && d.Reason != "closed-workflow" && d.Reason != "duplicate" {
			r.t.Errorf("dead letter %s about %s: %s", d.Reason, d.Subject, d.Details)
		}
		if strings.Contains(d.Subject, ".signal.") {
			r.t.Errorf("a signal is in the dead letters: %s %s", d.Reason, d.Subject)
		}
	}
	r.quiet()
}

// stop ends the processes; the fleet ends the brokers.
func (r *reference) stop() {
	r.end()
	r.ending.Wait()
}

// wantHistories counts what must have happened once.
func (r *reference) wantHistories() {
	r.t.Helper()
	got := map[string]int{}
	for _, record := range r.records(0) {
		for _, e := range record.Events {
			name := record.WorkflowID + " " + string(e.Type())
			switch a := e.Attributes.(type) {
			case *schemas.Signal:
				name += " " + a.SignalName
			case *schemas.WorkflowStarted, *schemas.ActivityScheduled, *schemas.ChildScheduled, *schemas.ChildStarted, *schemas.ChildSuccess,
				*schemas.WorkflowCancelRequested, *schemas.Marker,
				*schemas.WorkflowContinuedAsNew, *schemas.WorkflowSuccess, *schemas.WorkflowCanceled, *schemas.TimerCanceled,
				*schemas.SignalExternalFailed, *schemas.CancelExternalFailed, *schemas.ChildStartFailed:
			default:
				continue
			}
			got[name]++
		}
	}
	want := map[string]int{
		"o WorkflowStarted": 2, "o ActivityScheduled": 4, "o ChildScheduled": 1, "o ChildStarted": 1, "o ChildSuccess": 1, "o Marker": 1,
		"o Signal api": 1, "o Signal published": 1, "o Signal finish": 1, "o TimerCanceled": 1, "o WorkflowContinuedAsNew": 1, "o WorkflowSuccess": 1,
		"kid WorkflowStarted": 1, "kid Signal go": 1, "kid WorkflowSuccess": 1,
		"peer WorkflowStarted": 1, "peer WorkflowCancelRequested": 1, "peer WorkflowCanceled": 1,
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			r.t.Errorf("%s: %d, want %d", name, got[name], want[name])
		}
		delete(got, name)
	}
	if len(got) > 0 {
		r.t.Errorf("nobody asked for %v", got)
	}
}

// quiet checks that nothing is left of runs that are closed (I15), and that what workflows told one another agrees.
func (r *reference) quiet() {
	r.t.Helper()
	for _, stream := range []string{ns.StreamTasks("default"), ns.StreamAlarms(0)} {
		s, err := r.js.Stream(r.t.Context(), stream)
		if err != nil {
			r.t.Fatal(err)
		}
		if n := s.CachedInfo().State.Msgs; n != 0 {
			r.t.Errorf("%d messages are left in %s", n, stream)
			r.show(stream)
		}
	}
	c := checker.NewNamespace()
	err := r.post.Scan(r.t.Context(), ns.StreamHistory(0), natsconn.ReadOptions{FilterSubjects: []string{ns.AllRuns(0)}}, func(s natsconn.Stored) error {
		var record schemas.Record
		if err := schemas.Unmarshal(s.Data, &record); err != nil {
			return err
		}
		c.Record(&record, s.Data, schemas.At(s.Time)) // fleet.check reports what is found here
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, v := range c.End(checker.EndOptions{Quiet: true}) {
		r.t.Errorf("checker: %v", v)
	}
}

// show logs what a stream holds.
func (r *reference) show(stream string) {
	r.t.Helper()
	err := r.post.Scan(r.t.Context(), stream, natsconn.ReadOptions{}, func(s natsconn.Stored) error {
		r.t.Logf("%s: %d %s %s: %.200q", stream, s.Seq, s.Time.Format(time.StampMicro), s.Subject, s.Data)
		return nil
	})
	if err != nil {
		r.t.Error(err)
	}
}
