package broker_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/internal/cutwire"
)

// A run that nothing happens to leaves the memory. The next message finds it by one read of its last record: nobody is asked
// which run is the latest, and the alarm is neither armed anew nor looked for.
func TestIdleRunsArePassive(t *testing.T) { // P-2, P-10
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var reads, lookups, alarms atomic.Int64
		f.node("a", func(subj string, body []byte) cutwire.Verdict {
			switch {
			case subj == "$JS.API.DIRECT.GET."+ns.StreamHistory(0) && strings.HasPrefix(string(body), `{"seq":`):
				reads.Add(1)
			case strings.HasSuffix(subj, "GET."+ns.StreamHistory(0)):
				lookups.Add(1)
			case strings.HasSuffix(subj, "MSG.GET."+ns.StreamAlarms(0)):
				alarms.Add(1)
			}
			return cutwire.Pass
		}, func(o *broker.Options) { o.CachedRuns = 1 })
		f.decider("order", signaled)
		const n = 20
		f.starts(n)
		time.Sleep(time.Minute)
		reads.Store(0)
		lookups.Store(0)
		alarms.Store(0)
		for i := range n {
			f.publish(fmt.Sprintf("drover.default.signal.w%d.go", i), "")
		}
		time.Sleep(10 * time.Second)
		if got, l, a := reads.Load(), lookups.Load(), alarms.Load(); got < 1 || got > n || l != 0 || a != 0 {
			t.Errorf("got %d reads of runs, %d questions for the latest run, %d for alarms; want 1 to %d, 0, 0", got, l, a, n)
		}
		for i := range n { // after the count: a run that has ended may be forgotten by now, and be read for this
			f.completes(fmt.Sprintf("w%d", i))
		}
		if first, last, err := f.post.StreamState(t.Context(), ns.StreamAlarms(0)); err != nil || last != n || first <= last {
			t.Errorf("the alarm stream holds %d to %d (%v), want none of %d", first, last, err, n)
		}
		for i := range n {
			f.completes(fmt.Sprintf("w%d", i))
		}
	})
}

// The task of an attempt that was to wait is put on its list once. That it was is in no history: a parked run that is read again, by
// whoever asks for it or by the audit, must not have it there once more, for all that are there are done.
func TestPassiveRunDispatchesOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		options, start string
		tasks          uint64
	}{
		"a retry":                 {`,"retry":{"initialInterval":5}`, startO, 2},
		"a retry without timeout": {`,"retry":{"initialInterval":5},"startToCloseTimeout":"NONE"`, `{"workflowId":"o","type":"order","executionStartToCloseTimeout":"NONE"}`, 2},
		"a start delay":           {`,"startDelay":5`, startO, 1},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil, func(o *broker.Options) { o.CachedRuns = 1 })
				f.decider("order", one(tc.options))
				f.start(tc.start)
				if tc.tasks > 1 {
					k := f.pull()
					k.report("failed", `,"reason":"once"`)
					if err := k.msg.Ack(); err != nil {
						t.Fatal(err)
					}
				}
				for range 5 {
					time.Sleep(30 * time.Second)
					f.api("describe", `{"workflowId":"o"}`)
					time.Sleep(30 * time.Second)
					if a := f.audited("o").Runs[0]; a.Due != 0 && a.Due.Time().Before(time.Now()) {
						t.Errorf("the audit hears that something is due since %v", a.Due)
					}
				}
				if _, last, err := f.post.StreamState(t.Context(), ns.StreamTasks("main")); err != nil || last != tc.tasks {
					t.Errorf("%d tasks were put on the list (%v), want %d", last, err, tc.tasks)
				}
				if f.tryPull(time.Second) == nil {
					t.Error("the task is not there")
				}
			})
		})
	}
}
