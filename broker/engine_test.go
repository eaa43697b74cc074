package broker_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// counting counts signals and completes when it has seen n. What does not fit a task it reads, as
// any decider.
func (f *fleet) counting(n int) func(*decisionTask) string {
	seen := 0
	return func(d *decisionTask) string {
		last := d.PreviousStartedID
		for _, e := range d.Events {
			if last = e.ID; e.Type == "Signal" {
				seen++
			}
		}
		if d.More {
			for _, e := range f.events(d.WorkflowID) {
				if e.Type() == schemas.EventSignal && e.ID > last && e.ID < d.StartedID {
					seen++
				}
			}
		}
		if seen >= n {
			return complete
		}
		return "[]"
	}
}

func (f *fleet) records(p int) (all []schemas.Record) {
	f.t.Helper()
	err := f.post.Scan(f.t.Context(), ns.StreamHistory(p), natsconn.ReadOptions{FilterSubjects: []string{ns.AllRuns(p)}}, func(s natsconn.Stored) error {
		var r schemas.Record
		if err := schemas.Unmarshal(s.Data, &r); err != nil {
			return err
		}
		all = append(all, r)
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

func TestWaitingMessagesFoldIntoOneCommit(t *testing.T) { // S1-43: thousands of events
	virtually(t, 1, func(t *testing.T, f *fleet) {
		const n = 1200 // one page of a window
		f.decider("order", f.counting(n))
		body, err := schemas.Marshal(&schemas.StartRequest{V: 1, WorkflowID: "o", Run: "r1", Type: "order"})
		if err != nil {
			t.Fatal(err)
		}
		f.publish("drover.default.in.0.o.start", string(body))
		for i := range n {
			f.publish("drover.default.signal.o.s", fmt.Sprint(i))
		}
		f.node("a", nil)
		f.result("o")
		next := 0
		for _, e := range f.events("o") {
			if s, ok := e.Attributes.(*schemas.Signal); ok {
				if string(s.Input) != fmt.Sprint(next) {
					t.Fatalf("signal %d of the history is %s: order is lost", next, s.Input)
				}
				next++
			}
		}
		if next != n {
			t.Fatalf("%d signals in the history, want %d", next, n)
		}
		if records := len(f.records(0)); records > n/10 {
			t.Fatalf("%d records for %d signals: they were not folded", records, n)
		}
	})
}

func TestLongHistoryLoadsFromItsSnapshot(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		const n = 400
		f.decider("order", f.counting(n+1))
		a := f.node("a", nil, func(o *broker.Options) { o.SnapshotEvents = 50 })
		f.start(startO)
		for i := range n {
			f.publish("drover.default.signal.o.s", fmt.Sprint(i))
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		a.stop()
		records := f.records(0)
		snapshots := 0
		for _, r := range records {
			if len(r.Snapshot) > 0 {
				snapshots++
			}
		}
		if snapshots < 5 {
			t.Fatalf("%d snapshots in %d records", snapshots, len(records))
		}
		// The next owner must not need what lies before the last snapshot: take the first records away.
		var reads atomic.Int64
		f.node("b", func(subj string, body []byte) cutwire.Verdict {
			if subj == "$JS.API.DIRECT.GET."+ns.StreamHistory(0) {
				reads.Add(1)
				if strings.Contains(string(body), `"seq":1,`) {
					t.Errorf("read from the beginning: %s", body)
				}
			}
			return cutwire.Pass
		}, func(o *broker.Options) { o.SnapshotEvents = 50 })
		f.publish("drover.default.signal.o.s", "last")
		f.result("o")
		if reads.Load() == 0 {
			t.Fatal("the run was not read at all")
		}
	})
}

func TestCacheIsBounded(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil, func(o *broker.Options) { o.CachedRuns = 5 })
		f.decider("order", signaled)
		const n = 60
		f.starts(n)
		time.Sleep(10 * time.Second)
		for i := range n { // all but a few must be loaded again
			f.publish(fmt.Sprintf("drover.default.signal.w%d.go", i), "")
		}
		for i := range n {
			f.completes(fmt.Sprintf("w%d", i))
		}
	})
}

func TestConsumedMessagesArePurged(t *testing.T) { // P-9: all but the witness
	virtually(t, 1, func(t *testing.T, f *fleet) {
		const n = 5000
		f.node("a", nil)
		f.decider("order", f.counting(n))
		f.start(startO)
		for i := range n {
			f.publish("drover.default.signal.o.s", fmt.Sprint(i))
		}
		f.result("o")
		time.Sleep(30 * time.Second)
		first, last, err := f.post.StreamState(t.Context(), ns.StreamSignals())
		if err != nil {
			t.Fatal(err)
		}
		if first < n/2 || first > last {
			t.Fatalf("the signals stream holds %d to %d: consumed messages must go, the last stays as a witness", first, last)
		}
		var c schemas.Checkpoint
		raw, _, err := f.post.KVGet(t.Context(), ns.BucketCheckpoints(), "partition.0")
		if err != nil {
			t.Fatal(err)
		}
		if err := schemas.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		if c.Signals.Sequence != last || c.Signals.Time == 0 {
			t.Fatalf("checkpoint %+v, want the last signal %d", c, last)
		}
		if _, err := f.post.GetSeq(t.Context(), ns.StreamSignals(), c.Signals.Sequence); err != nil {
			t.Fatalf("the witness is gone: %v", err)
		}
	})
}

func TestBrokersShareThePartitions(t *testing.T) { // S3-8
	virtually(t, 8, func(t *testing.T, f *fleet) {
		a := f.node("a", nil)
		f.api("list", "{}")
		owned := func(nodes ...*node) []int {
			var all []int
			for _, n := range nodes {
				all = append(all, n.broker.Owned()...)
			}
			slices.Sort(all)
			return all
		}
		settle := func(within time.Duration, want func() bool, what string) time.Duration {
			t.Helper()
			began := time.Now()
			for !want() {
				if time.Since(began) > within {
					t.Fatalf("%s did not come within %v", what, within)
				}
				time.Sleep(10 * time.Millisecond)
			}
			return time.Since(began)
		}
		settle(5*time.Second, func() bool { return len(owned(a)) == 8 }, "all partitions of one broker")
		b := f.node("b", nil)
		settle(30*time.Second, func() bool {
			return len(b.broker.Owned()) > 0 && len(owned(a, b)) == 8
		}, "a share for the second broker")
		time.Sleep(time.Minute) // and it stays so
		if got := owned(a, b); !slices.Equal(got, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
			t.Fatalf("owned %v, want each partition once", got)
		}
		if len(a.broker.Owned()) == 0 {
			t.Fatal("the first broker has nothing left")
		}
		a.wire.Kill()
		took := settle(11*time.Second, func() bool { return len(b.broker.Owned()) == 8 }, "the dead broker's share")
		t.Logf("replaced %v after the kill", took)
		a.stop()
	})
}

func TestPlannedStopHandsOverAtOnce(t *testing.T) {
	virtually(t, 4, func(t *testing.T, f *fleet) {
		a := f.node("a", nil)
		f.api("list", "{}")
		for len(a.broker.Owned()) < 4 {
			time.Sleep(10 * time.Millisecond)
		}
		b := f.node("b", nil)
		time.Sleep(10 * time.Second)
		began := time.Now()
		a.stop()
		for len(b.broker.Owned()) < 4 {
			if time.Since(began) > 2*time.Second {
				t.Fatalf("%d partitions after %v", len(b.broker.Owned()), time.Since(began))
			}
			time.Sleep(time.Millisecond)
		}
	})
}

func TestUndecodableMessagesArePassive(t *testing.T) { // bad input: malformed and hostile msgpack, invalid JSON
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", one(""))
		f.start(startO)
		k := f.pull()
		hostile := []string{"\x01\xdd\xff\xff\xff\xff", "\xdd\xff\xff\xff\xff", "\x01", "", "{", `{"v":9}`, `{"token":7}`, "\x01" + strings.Repeat("\x91", 1000), "\x07"}
		for _, body := range hostile {
			f.publish("drover.default.in.0.o.start", body)
			f.publish(k.Report, body)
			f.publish("drover.default.in.0.o.alarm", body)
			f.publish("drover.default.in.0.o.nonsense", body)
			f.publish("drover.default.in.0.%zz.start", body)
			f.publish("drover.default.in.0.o", body)
			for _, verb := range []string{"start", "describe", "history", "result", "why", "list", "dead", "signal", "tasklist", "pause"} {
				a := f.api(verb, body)
				if a["error"] == nil && verb != "list" && verb != "dead" {
					t.Errorf("%s %q: %v, want an error", verb, body, a)
				}
			}
			f.publish("drover.default.signal.o.any", body) // a signal's body is anything
		}
		for f.count("o", schemas.EventSignal) < len(hostile) { // the two logs are read side by side: let the signals come in first
			time.Sleep(10 * time.Millisecond)
		}
		k.success()
		f.result("o")
		signals := 0
		for _, e := range f.events("o") {
			if s, ok := e.Attributes.(*schemas.Signal); ok {
				if string(s.Input) != hostile[signals] {
					t.Fatalf("signal %d is %q, want %q", signals, s.Input, hostile[signals])
				}
				signals++
			}
		}
		if signals != len(hostile) {
			t.Fatalf("%d signals, want %d", signals, len(hostile))
		}
		time.Sleep(time.Second)
		if dead := f.dead(); len(dead) < 6*len(hostile)-8 {
			t.Fatalf("%d dead letters: %v", len(dead), dead)
		}
	})
}

// A message that no record could hold must neither be lost nor stop its partition.
func TestTooLargeMessagesArePassive(t *testing.T) { // bad input
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", one(""))
		f.start(startO)
		k := f.pull()
		// Payloads of that size go to the object store; nothing else in a message may be so large.
		large := `{"workflowId":"x","type":"order","run":"r1","identity":"` + strings.Repeat("x", 1<<20-2048) + `"}`
		f.publish("drover.default.in.0.x.start", large)
		for len(f.letters()) == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		d := f.letters()[0]
		if d.Reason != "too-large" || len(d.Body) < 900_000 || !strings.HasPrefix(large, string(d.Body)) {
			t.Fatalf("dead letter %q with %d bytes, want too-large with the body", d.Reason, len(d.Body))
		}
		k.success()
		f.result("o")
		f.wantTypes("o", oneActivity...)
	})
}

// A server that dies with the first question of a broker in hand, or an answer that is lost, keeps no broker from beginning.
func TestFirstQuestionIsAskedAgain(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var asked atomic.Int64
		f.node("a", func(subj string, _ []byte) cutwire.Verdict {
			if subj == "$JS.API.STREAM.INFO."+ns.StreamHistory(0) && asked.Add(1) == 1 {
				return cutwire.Swallow
			}
			return cutwire.Pass
		})
		f.decider("order", func(*decisionTask) string { return complete })
		time.Sleep(5 * time.Second)
		f.start(startO)
		f.completes("o")
		if got := asked.Load(); got < 2 {
			t.Errorf("the server was asked %d times, want again", got)
		}
	})
}
