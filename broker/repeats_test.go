package broker_test

import (
	"flag"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// otherSignals is how many other signals come between a signal and its repeat.
var otherSignals = flag.Int("signals", 2400, "how many other signals come before one is repeated")

// nexts decides that a run continues as new with a signal "next", and ends with "end".
func nexts(d *decisionTask) string {
	for _, e := range d.Events {
		switch e.Attributes["signalName"] {
		case "next":
			return `[{"type":"ContinueAsNew"}]`
		case "end":
			return complete
		}
	}
	if d.has("WorkflowCloseFailed") {
		return `[{"type":"ContinueAsNew"}]`
	}
	return "[]"
}

// chainOf is what the records of a workflow hold, in all of its runs: how often each request id, the runs, and the longest body.
type chainOf struct {
	ids     map[string]int
	runs    []string
	longest int
}

func (f *fleet) chainOf(id string) (c chainOf) {
	f.t.Helper()
	c.ids = map[string]int{}
	p, filter := f.ofRuns(id)
	err := f.post.Scan(f.t.Context(), ns.StreamHistory(p), natsconn.ReadOptions{FilterSubjects: []string{filter}}, func(s natsconn.Stored) error {
		var r schemas.Record
		if err := schemas.Unmarshal(s.Data, &r); err != nil {
			return err
		}
		if c.longest = max(c.longest, len(s.Data)); !slices.Contains(c.runs, r.Run) {
			c.runs = append(c.runs, r.Run)
		}
		for _, e := range r.Events {
			switch a := e.Attributes.(type) {
			case *schemas.Signal:
				if a.OriginRun == "" { // else it is a copy
					c.ids[a.RequestID]++
				}
			case *schemas.WorkflowPaused:
				c.ids[a.RequestID]++
			case *schemas.WorkflowResumed:
				c.ids[a.RequestID]++
			case *schemas.WorkflowCancelRequested:
				c.ids[a.RequestID]++
			}
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// signalWith publishes a signal for "o" with an id in a header.
func (f *fleet) signalWith(header, id, name string) {
	f.t.Helper()
	m := &nats.Msg{Subject: "drover.default.signal.o." + name}
	if id != "" {
		m.Header = nats.Header{header: {id}}
	}
	if _, err := f.js.PublishMsg(f.t.Context(), m); err != nil {
		f.t.Fatal(err)
	}
}

// others publishes n signals for "o" with ids of their own.
func (f *fleet) others(prefix string, n int) {
	f.t.Helper()
	f.othersFor("o", prefix, n)
}

func (f *fleet) othersFor(wid, prefix string, n int) {
	f.t.Helper()
	acks := make([]jetstream.PubAckFuture, 0, 500)
	for i := range n {
		m := &nats.Msg{Subject: "drover.default.signal." + wid + ".other", Header: nats.Header{schemas.RequestIDHeader: {fmt.Sprintf("%s-%d", prefix, i)}}}
		ack, err := f.js.PublishMsgAsync(m)
		if err != nil {
			f.t.Fatal(err)
		}
		if acks = append(acks, ack); len(acks) == cap(acks) || i == n-1 {
			for _, a := range acks {
				select {
				case <-a.Ok():
				case err := <-a.Err():
					f.t.Fatal(err)
				}
			}
			acks = acks[:0]
		}
	}
}

// A signal that its sender repeats counts once, however many came in between, whichever way it comes, also in the next runs of the
// chain, and after its owner was killed.
func TestSignalCountsOnceWhateverCameBetween(t *testing.T) { // E1, P-6
	virtually(t, 1, func(t *testing.T, f *fleet) {
		a := f.node("a", nil)
		f.decider("order", nexts)
		f.start(startO)
		byAPI := func(id string) {
			t.Helper()
			if got := f.api("signal", fmt.Sprintf(`{"workflowId":"o","name":"pay","requestId":%q}`, id)); got["error"] != nil {
				t.Fatalf("signal %s: got %v", id, got)
			}
		}
		pays := []string{"pay-1", "pay-2", "pay-3", "pay-4"}
		pay := func() {
			t.Helper()
			byAPI(pays[0])
			f.signalWith("Nats-Msg-Id", pays[1], "pay")
			f.signalWith(schemas.RequestIDHeader, pays[2], "pay")
			if got := f.api("start", `{"workflowId":"o","type":"order","requestId":"q9","signal":{"name":"pay","requestId":"pay-4"}}`); got["error"] != nil {
				t.Fatalf("signal with start: got %v", got)
			}
		}
		last := 0
		once := func(when string) {
			t.Helper()
			last++
			mark := fmt.Sprintf("mark-%d", last)
			byAPI(mark)
			var c chainOf
			if !f.until(time.Minute, func() bool { c = f.chainOf("o"); return c.ids[mark] == 1 }) {
				t.Fatalf("%s: the signal %s does not come: %v", when, mark, c)
			}
			for _, id := range pays {
				if c.ids[id] != 1 {
					t.Errorf("%s: signal %s counts %d times, want once", when, id, c.ids[id])
				}
			}
		}
		pay()
		once("before the repeat")
		began := time.Now()
		for i := range 3 {
			f.others(fmt.Sprint(i), *otherSignals/4)
			f.signalWith("", "", "next")
			if !f.until(time.Minute, func() bool { return len(f.chainOf("o").runs) == i+2 }) {
				t.Fatalf("the chain has the runs %v, want %d", f.chainOf("o").runs, i+2)
			}
		}
		f.others("last", *otherSignals-3*(*otherSignals/4))
		t.Logf("%d signals took %v of virtual time", *otherSignals, time.Since(began))
		pay()
		once("after the others")
		byAPI(pays[1])
		f.signalWith(schemas.RequestIDHeader, pays[0], "pay")
		once("the other way")
		if n := a.broker.Remembered(0); n > *otherSignals+100 {
			t.Errorf("the index has %d ids, want one for each signal", n)
		}

		a.kill()
		b := f.node("b", nil)
		pay()
		f.others("more", 100)
		pay()
		once("at the next owner")
		c := f.chainOf("o")
		if n := b.broker.Remembered(0); n > *otherSignals+200 {
			t.Errorf("the index has %d ids, want one for each signal", n)
		}
		if c.longest > 512<<10 {
			t.Errorf("the longest record has %d bytes", c.longest)
		}
		for id, n := range c.ids {
			if n != 1 && id != "" {
				t.Errorf("signal %s counts %d times, want once", id, n)
			}
		}
		t.Logf("longest record: %d bytes; ids in the index: %d", c.longest, b.broker.Remembered(0))
	})
}

// The same is true of the requests of operators.
func TestRequestCountsOnceWhateverCameBetween(t *testing.T) { // E1, P-5
	virtually(t, 1, func(t *testing.T, f *fleet) {
		a := f.node("a", nil)
		f.decider("order", nexts)
		f.start(startO)
		ask := func(verb, id string) {
			t.Helper()
			if got := f.api(verb, fmt.Sprintf(`{"workflowId":"o","requestId":%q}`, id)); got["error"] != nil {
				t.Fatalf("%s %s: got %v", verb, id, got)
			}
		}
		ask("pause", "p")
		ask("resume", "r")
		for i := range 60 {
			ask("pause", fmt.Sprint("p", i))
			ask("resume", fmt.Sprint("r", i))
		}
		once := func(when string) {
			t.Helper()
			c := f.chainOf("o")
			for id, n := range c.ids {
				if n != 1 {
					t.Errorf("%s: request %s counts %d times, want once", when, id, n)
				}
			}
		}
		ask("pause", "p")
		ask("pause", "p0")
		once("after 121 requests")
		f.signalWith("", "", "next")
		if !f.until(time.Minute, func() bool { return len(f.chainOf("o").runs) == 2 }) {
			t.Fatal("the run does not continue")
		}
		a.kill()
		f.node("b", nil)
		ask("pause", "p")
		once("at the next owner")
		ask("pause", "last")
		ask("resume", "r")
		if got := f.api("describe", `{"workflowId":"o"}`)["execution"].(map[string]any)["status"]; got != "paused" {
			t.Errorf("status %v, want paused: the resume is a repeat", got)
		}
		ask("resume", "end")
	})
}

// The same is true of what another workflow sends, which is answered each time, in the chain and after its end.
func TestErrandCountsOnceWhateverCameBetween(t *testing.T) { // E1, P-6
	for kind, tc := range map[string]struct {
		decision string
		known    schemas.EventType
	}{
		"signal": {`[{"type":"SignalExternal","attributes":{"workflowId":"kid","signalName":"go"}}]`, schemas.EventExternalSignaled},
		"cancel": {`[{"type":"CancelExternal","attributes":{"workflowId":"kid"}}]`, schemas.EventExternalCancelRequested},
	} {
		t.Run(kind, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				var answers atomic.Int64
				f.decider("kid", nexts)
				b := &bodies{prefix: ns.In(0, "kid", kind), then: func(subj string, _ []byte) cutwire.Verdict {
					if subj == ns.In(0, "o", "external") {
						answers.Add(1)
					}
					return cutwire.Pass
				}}
				a := f.node("a", b.judge)
				f.start(`{"workflowId":"kid","type":"kid","run":"k1"}`)
				f.decider("order", when("WorkflowStarted", tc.decision))
				f.start(startO)
				f.await("o", tc.known)
				f.othersFor("kid", "first", 1100)
				f.publish("drover.default.signal.kid.next", "")
				if !f.until(time.Minute, func() bool { return len(f.chainOf("kid").runs) == 2 }) {
					t.Fatal("the target does not continue")
				}
				again := func(when string) {
					t.Helper()
					before := answers.Load()
					f.publish(b.prefix, b.first(t))
					if !f.until(time.Minute, func() bool { return answers.Load() > before }) {
						t.Errorf("%s: the sender gets no answer", when)
					}
					if n := f.errands("kid"); n != 1 {
						t.Errorf("%s: the errand counts %d times, want once", when, n)
					}
				}
				again("in the next run")
				f.publish("drover.default.signal.kid.end", "")
				f.completes("kid")
				again("after the end")
				a.stop()
				f.node("b", nil)
				if n := f.count("o", schemas.EventCancelExternalFailed) + f.count("o", schemas.EventSignalExternalFailed); n != 0 {
					t.Errorf("the sender was told %d times that it failed", n)
				}
			})
		})
	}
}

// A repeat that comes when the run has closed is answered as the first, and is no dead letter. One to a run that was started anew
// is meant.
func TestRepeatAfterTheEnd(t *testing.T) { // E1, P-5
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", nexts)
		f.start(startO)
		for i := range 120 {
			verb := []string{"pause", "resume"}[i%2]
			if got := f.api(verb, fmt.Sprintf(`{"workflowId":"o","requestId":"%s%d"}`, verb, i)); got["error"] != nil {
				t.Fatal(got)
			}
		}
		first := `{"workflowId":"o","name":"pay","requestId":"pay-1"}`
		if got := f.api("signal", first); got["error"] != nil {
			t.Fatal(got)
		}
		f.others("o", 1100)
		f.signalWith("", "", "end")
		f.completes("o")
		for body, want := range map[string]bool{
			first: true,
			`{"workflowId":"o","name":"pay","requestId":"another"}`: false,
		} {
			if got := f.api("signal", body); (got["error"] == nil) != want {
				t.Errorf("signal %s after the end: got %v", body, got)
			}
		}
		for id, want := range map[string]bool{"pause0": true, "resume1": true, "another": false} {
			if got := f.api("pause", fmt.Sprintf(`{"workflowId":"o","requestId":%q}`, id)); (got["error"] == nil) != want {
				t.Errorf("request %s after the end: got %v", id, got)
			}
		}
		f.signalWith(schemas.RequestIDHeader, "pay-1", "pay")
		f.signalWith(schemas.RequestIDHeader, "late", "pay")
		if !f.until(time.Minute, func() bool { return len(f.dead()) > 0 }) || len(f.dead()) != 1 {
			t.Errorf("dead letters %v, want the signal alone that came for the first time", f.dead())
		}
		f.start(`{"workflowId":"o","type":"order","run":"r2"}`)
		if got := f.api("signal", first); got["error"] != nil {
			t.Fatal(got)
		}
		if !f.until(time.Minute, func() bool { return f.chainOf("o").ids["pay-1"] == 2 }) {
			t.Error("a signal that is sent again to a new run does not come")
		}
	})
}

// More signals may wait to be written than the state remembers.
func TestRepeatInOneBatch(t *testing.T) { // E1
	virtually(t, 1, func(t *testing.T, f *fleet) {
		a := f.node("a", nil)
		f.decider("order", nexts)
		f.start(startO)
		for i := range 3 {
			a.broker.Busy(0, time.Second)
			pay := fmt.Sprint("pay-", i)
			f.signalWith(schemas.RequestIDHeader, pay, "pay")
			f.others(fmt.Sprint(i), 1500)
			f.signalWith(schemas.RequestIDHeader, pay, "pay")
			f.signalWith(schemas.RequestIDHeader, fmt.Sprint("last-", i), "pay")
			if !f.until(time.Minute, func() bool { return f.chainOf("o").ids[fmt.Sprint("last-", i)] == 1 }) {
				t.Fatal("the last signal does not come")
			}
			c := f.chainOf("o")
			if c.ids[pay] != 1 || len(c.ids) != 1502*(i+1) {
				t.Errorf("signal %s counts %d times, and there are %d ids; want one, and %d", pay, c.ids[pay], len(c.ids), 1502*(i+1))
			}
		}
	})
}

// Where there is no room for the ids of ten minutes, who describes the run is told since when they are remembered.
func TestIndexOfRequestsIsBounded(t *testing.T) { // E1
	const most = 1500
	defer broker.RememberFewer(most)()
	virtually(t, 1, func(t *testing.T, f *fleet) {
		a := f.node("a", nil)
		f.decider("order", nexts)
		f.start(startO)
		since := func() schemas.Timestamp {
			t.Helper()
			var d schemas.DescribeResponse
			f.apiInto(&d, "describe", `{"workflowId":"o"}`)
			var audited schemas.AuditResponse
			f.apiInto(&audited, "audit", `{"partition":0,"workflows":["o"]}`)
			if got := audited.Runs[0].RequestIDsSince; got != d.RequestIDsSince {
				t.Errorf("an audit is told %v, and a description %v", got, d.RequestIDsSince)
			}
			return d.RequestIDsSince
		}
		sent := func(prefix string, n int) {
			t.Helper()
			f.others(prefix, n)
			last := fmt.Sprintf("%s-%d", prefix, n-1)
			if !f.until(time.Minute, func() bool { return f.chainOf("o").ids[last] == 1 }) {
				t.Fatalf("signal %s does not come", last)
			}
		}
		sent("few", 1200)
		time.Sleep(time.Minute)
		if got := since(); got != 0 {
			t.Errorf("the ids are said to be known since %v, want no word of it", got)
		}
		sent("many", 1200)
		sent("many", 1) // a repeat
		if got := since(); got == 0 || got > schemas.At(time.Now().Add(time.Second)) {
			t.Errorf("the ids are said to be known since %v, want a time before now", got)
		}
		if n := a.broker.Remembered(0); n > most {
			t.Errorf("the index has %d ids, want %d at most", n, most)
		}
		a.stop()
		b := f.node("b", nil)
		sent("later", 1)
		if got := since(); got == 0 {
			t.Error("at the next owner nothing is said of since when ids are known")
		}
		if n := b.broker.Remembered(0); n > most {
			t.Errorf("the index of the next owner has %d ids, want %d at most", n, most)
		}
		time.Sleep(25 * time.Minute)
		synctest.Wait()
		if n, got := b.broker.Remembered(0), since(); n != 0 || got != 0 {
			t.Errorf("25 minutes later the index has %d ids, and ids are said to be known since %v", n, got)
		}
	})
}
