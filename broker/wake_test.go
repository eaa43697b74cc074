package broker_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

const (
	bySequence = `{"seq":`
	bySubject  = "next_by_subj"
)

// readsOf counts the reads of the first partition's history by a word of the question; judge is asked for each.
func readsOf(word string, judge func(nth int64) cutwire.Verdict) (count *atomic.Int64, wire func(string, []byte) cutwire.Verdict) {
	count = &atomic.Int64{}
	return count, func(subj string, body []byte) cutwire.Verdict {
		if subj != "$JS.API.DIRECT.GET."+ns.StreamHistory(0) || !strings.Contains(string(body), word) ||
			word == bySequence && strings.Contains(string(body), bySubject) {
			return cutwire.Pass
		}
		return judge(count.Add(1))
	}
}

func pass(int64) cutwire.Verdict { return cutwire.Pass }

// Sleepers that wake together are read together, each with its own history, and whatever lies between them in the history.
func TestSleepersAreReadTogether(t *testing.T) { // P-2, P-15
	virtually(t, 1, func(t *testing.T, f *fleet) {
		reads, wire := readsOf(bySequence, pass)
		f.node("a", wire, func(o *broker.Options) { o.CachedRuns = 1 })
		f.decider("order", sleeper)
		f.decider("short", func(*decisionTask) string { return complete })
		const n = 100
		for i := range n {
			f.start(fmt.Sprintf(`{"workflowId":"w%d","type":"order","input":"w%d"}`, i, i))
			for j := range i % 5 { // up to four other records in between
				f.start(fmt.Sprintf(`{"workflowId":"w%d.%d","type":"short"}`, i, j))
			}
		}
		time.Sleep(30 * time.Second)
		reads.Store(0)
		time.Sleep(2 * time.Minute)
		if got := reads.Load(); got == 0 || got > n/2 {
			t.Errorf("%d sleepers were read by %d questions; want some, at most %d", n, got, n/2)
		}
		for i := range n {
			id := fmt.Sprintf("w%d", i)
			if got := f.result0(id); got != "completed" {
				t.Fatalf("%s: %s", id, got)
			}
			if first, ok := f.events(id)[0].Attributes.(*schemas.WorkflowStarted); !ok || string(first.Input) != `"`+id+`"` {
				t.Fatalf("%s has a history that begins with %+v", id, first)
			}
		}
	})
}

// A parked run whose last record does not say everything is read from its beginning, or its last snapshot.
func TestSleepersWithOlderRecords(t *testing.T) { // P-2
	for _, tc := range []struct {
		name      string
		snapshots int
	}{{"no snapshot", 1000}, {"snapshots", 3}} {
		t.Run(tc.name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil, func(o *broker.Options) { o.CachedRuns, o.SnapshotEvents = 1, tc.snapshots })
				f.decider("order", func(d *decisionTask) string {
					if d.has("TimerExpired") {
						return complete
					}
					if d.has("Signal") {
						return "[]"
					}
					return sleepMinute
				})
				const n = 10
				f.starts(n)
				for range 3 {
					time.Sleep(10 * time.Second)
					for i := range n {
						f.publish(fmt.Sprintf("drover.default.signal.w%d.go", i), "")
					}
				}
				time.Sleep(2 * time.Minute)
				f.haveCompleted(n)
			})
		})
	}
}

// A read that is lost, or brings less than was asked for, makes nobody sleep on.
func TestSleepersWhoseReadFails(t *testing.T) { // P-2
	for _, tc := range []struct {
		name    string
		verdict cutwire.Verdict
	}{
		{"question lost", cutwire.Swallow},
		{"answer lost", cutwire.Unanswered},
		{"asked twice", cutwire.Twice},
		{"late", cutwire.Late},
		{"connection lost", cutwire.Break},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				reads, wire := readsOf(bySequence, func(nth int64) cutwire.Verdict {
					if nth == 1 {
						return tc.verdict
					}
					return cutwire.Pass
				})
				f.node("a", wire, func(o *broker.Options) { o.CachedRuns = 1 })
				f.decider("order", sleeper)
				const n = 20
				f.starts(n)
				time.Sleep(3 * time.Minute)
				if reads.Load() == 0 {
					t.Fatal("nothing was read by its sequence")
				}
				f.haveCompleted(n)
			})
		})
	}
}

// What has happened waits for the decision about it, and no longer than 20 ms.
func TestWhatFiredWaitsForItsDecision(t *testing.T) { // ADR 0020
	for _, tc := range []struct {
		name    string
		think   time.Duration
		records int // in the end
	}{
		{"soon decided", 10 * time.Millisecond, 2},
		{"decided late", 50 * time.Millisecond, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				rehydrated := make(chan struct{}, 1)
				f.decider("order", func(d *decisionTask) string {
					if !d.has("TimerExpired") {
						return sleepMinute
					}
					select {
					case rehydrated <- struct{}{}:
						time.Sleep(tc.think)
					default:
					}
					return complete
				})
				f.start(`{"workflowId":"w","type":"order"}`)
				<-rehydrated
				time.Sleep(25 * time.Millisecond)
				got, _, err := f.post.BatchGet(t.Context(), ns.StreamHistory(0), ns.HistoryOfWorkflow(0, "w"), 1, 10)
				if err != nil || len(got) != 2 {
					t.Errorf("25 ms later: got %d records (%v), want 2", len(got), err)
				}
				time.Sleep(time.Second)
				f.completes("w")
				got, _, err = f.post.BatchGet(t.Context(), ns.StreamHistory(0), ns.HistoryOfWorkflow(0, "w"), 1, 10)
				if err != nil || len(got) != tc.records {
					t.Errorf("got %d records (%v), want %d", len(got), err, tc.records)
				}
			})
		})
	}
}
