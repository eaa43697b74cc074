package broker_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// Days of an idle server take minutes in virtual time too, so an hour is a minute here. The core plays a week of real hours.
var hour = flag.Duration("hour", time.Minute, "how long an hour of TestTwoDaysOfContinuations is")

const continueAsNew = `[{"type":"ContinueAsNew","attributes":{}}]`

// runOfChain is a run of a chain, as its history has it.
type runOfChain struct {
	id       string
	started  *schemas.WorkflowStarted
	last     int64    // event
	received []string // the numbers of its signals that are no copies
	copied   int
	asked    []string // the reasons of ContinuationSuggested
	status   schemas.Status
}

// linksOf reads the runs of a workflow in the order of their records.
func (f *fleet) linksOf(wid string) (all []*runOfChain) {
	f.t.Helper()
	p, filter := f.ofRuns(wid)
	err := f.post.Scan(f.t.Context(), ns.StreamHistory(p), natsconn.ReadOptions{FilterSubjects: []string{filter}}, func(s natsconn.Stored) error {
		var r schemas.Record
		if err := schemas.Unmarshal(s.Data, &r); err != nil {
			return err
		}
		if len(all) == 0 || all[len(all)-1].id != r.Run {
			all = append(all, &runOfChain{id: r.Run})
		}
		run := all[len(all)-1]
		for _, e := range r.Events {
			run.last = e.ID
			if status, closes := schemas.StatusOf(e.Type()); closes {
				run.status = status
			}
			switch a := e.Attributes.(type) {
			case *schemas.WorkflowStarted:
				run.started = a
			case *schemas.ContinuationSuggested:
				run.asked = append(run.asked, a.Reasons...)
			case *schemas.Signal:
				switch {
				case a.OriginRun != "":
					run.copied++
				case a.SignalName == "s":
					run.received = append(run.received, numberOf(a))
				}
			}
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

// numbered sends signals "0", "1" … to workflow o, from several goroutines in one order.
type numbered struct {
	sync.Mutex
	f *fleet
	n int
}

func (s *numbered) send() {
	s.Lock()
	defer s.Unlock()
	s.f.publish("drover.default.signal.o.s", fmt.Sprintf("%q", fmt.Sprint(s.n)))
	s.n++
}

// S2-6, S2-8, S2-9, P-4. A run that is kept running continues as new once an hour for two days, while signals come in: in every fourth run while
// its decider continues it, and in every other fourth whenever its decider does. None is lost, comes twice or in another order, and no
// history grows beyond what comes in an hour.
func TestTwoDaysOfContinuations(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		seen := &seenSignals{last: map[string]int64{}}
		signals := &numbered{f: f}
		ended, runs, last := false, 0, ""
		f.decider("order", func(d *decisionTask) string {
			run, _, _ := strings.Cut(d.Token, ".")
			for _, e := range d.Events {
				name, _ := e.Attributes["signalName"].(string)
				ended = ended || name == "end"
				if input, _ := e.Attributes["input"].(string); name == "s" && e.ID > seen.last[run] {
					seen.last[run], seen.signals = e.ID, append(seen.signals, input)
				}
			}
			switch {
			case ended:
				return complete
			case d.SuggestContinueAsNew:
				if !slices.Equal(d.ContinueReasons, []string{"age"}) {
					t.Errorf("it is to continue because of %q, want its age", d.ContinueReasons)
				}
				first := run != last
				if first {
					runs, last = runs+1, run
				}
				if runs%4 == 1 && first || runs%4 == 3 {
					signals.send()
					signals.send()
				}
				return continueAsNew
			}
			return "[]"
		})
		owner := f.node("a", nil)
		f.start(fmt.Sprintf(`{"workflowId":"o","run":"r1","type":"order","startMode":"AutoStart","continuation":{"after":"%s"}}`, *hour))
		const hours = 2 * 24
		for begun := time.Now(); time.Since(begun) < time.Duration(hours)**hour; {
			signals.send()
			time.Sleep(13 * *hour / 60)
		}
		if n := owner.broker.Runs(0); n != 1 {
			t.Errorf("the owner has %d runs in memory, want the one that is open", n)
		}
		f.publish("drover.default.signal.o.end", "")
		f.completes("o")
		chain := f.linksOf("o")
		var recorded []string
		copies := 0
		for i, run := range chain {
			recorded, copies = append(recorded, run.received...), copies+run.copied
			want, status := schemas.ModeContinuation, schemas.StatusContinuedAsNew
			if i == 0 {
				want = schemas.ModeAutoStart
			}
			if i == len(chain)-1 {
				status = schemas.StatusCompleted
			} else if len(run.asked) != 1 {
				t.Errorf("run %d was asked to continue %d times, want once", i, len(run.asked))
			}
			if run.started.Mode() != want || run.status != status {
				t.Errorf("run %d: begun by %q, %s; want %q, %s", i, run.started.Mode(), run.status, want, status)
			}
			if run.last > 150 {
				t.Errorf("run %d has %d events, want what an hour brings", i, run.last)
			}
		}
		inOrder(t, "in the histories", recorded, signals.n)
		inOrder(t, "that deciders have seen", seen.signals, signals.n)
		if len(chain) < hours*3/4 || len(chain) > hours+1 || copies == 0 {
			t.Errorf("%d runs in %d hours, with %d copied signals", len(chain), hours, copies)
		}
		if dead := f.dead(); len(dead) > 0 {
			t.Errorf("dead letters: %v", dead)
		}
		t.Logf("%d signals, %d of them copied, in %d runs", signals.n, copies, len(chain))
	})
}

// S2-6: a run that is held is not asked to continue, describe and why say so, the next run of the chain is held too, and once it is released it
// is asked at once.
func TestAHeldRunDoesNotContinue(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", func(d *decisionTask) string {
			if d.SuggestContinueAsNew || slices.ContainsFunc(d.Events, func(e decisionEvent) bool { return e.Attributes["signalName"] == "next" }) {
				return continueAsNew
			}
			return "[]"
		})
		f.node("a", nil)
		f.start(`{"workflowId":"o","run":"r1","type":"order","continuation":{"after":60}}`)
		held := func(want string) {
			t.Helper()
			var d schemas.DescribeResponse
			f.apiInto(&d, "describe", `{"workflowId":"o"}`)
			got := ""
			if d.Held != nil {
				got = d.Held.Reason
			}
			if why := f.why("o"); got != want || strings.Contains(why, "it is held (looking)") != (want != "") {
				t.Fatalf("held: %q, want %q; why: %s", got, want, why)
			}
		}
		f.api("hold", `{"workflowId":"o","reason":"looking","requestId":"q"}`)
		f.api("hold", `{"workflowId":"o","reason":"again","requestId":"q"}`)
		held("looking")
		f.publish("drover.default.signal.o.s", "")
		time.Sleep(time.Hour)
		if n := f.happened("o", schemas.EventContinuationSuggested); n != 0 {
			t.Fatalf("it was asked %d times", n)
		}
		f.publish("drover.default.signal.o.next", "")
		time.Sleep(time.Minute)
		held("looking")
		f.publish("drover.default.signal.o.s", "")
		time.Sleep(time.Hour)
		if runs := f.linksOf("o"); len(runs) != 2 || len(runs[1].asked) != 0 || runs[1].started.Held == nil {
			t.Fatalf("got %d runs, the second %+v", len(runs), runs[1])
		}
		f.api("release", `{"workflowId":"o","requestId":"q2"}`)
		time.Sleep(10 * time.Second)
		if runs := f.linksOf("o"); len(runs) != 3 || !slices.Equal(runs[1].asked, []string{"age"}) {
			t.Fatalf("got %d runs, the second %+v", len(runs), runs[1])
		}
		held("")
	})
}

// S2-8: who starts a workflow says what begins it, lists and decision tasks tell, and what only brokers know is refused.
func TestStartModesAreTold(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		modes := map[string]string{}
		f.decider("order", func(d *decisionTask) string {
			modes[d.WorkflowID] = d.StartMode
			if d.WorkflowID == "p" && d.PreviousStartedID == 0 {
				return `[{"type":"StartChild","attributes":{"workflowId":"c","workflowType":"order"}}]`
			}
			return complete
		})
		f.node("a", nil)
		f.start(`{"workflowId":"m","type":"order"}`)
		f.start(`{"workflowId":"s","type":"order","startMode":"Schedule"}`)
		f.start(`{"workflowId":"p","type":"order","startMode":"AutoStart"}`)
		for _, id := range []string{"m", "s", "p", "c"} {
			f.completes(id)
		}
		want := map[string]string{"m": "Manual", "s": "Schedule", "p": "AutoStart", "c": "Child"}
		if diff := cmp.Diff(want, modes); diff != "" {
			t.Errorf("deciders (-want +got):\n%s", diff)
		}
		var list schemas.ListResponse
		f.apiInto(&list, "list", `{}`)
		listed := map[string]string{}
		for _, i := range list.Executions {
			listed[i.WorkflowID] = string(i.StartMode)
		}
		if diff := cmp.Diff(want, listed); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
		for _, tt := range []struct{ body, field string }{
			{`"startMode":"Child"`, "startMode"},
			{`"startMode":"AutoStart (Continuation)"`, "startMode"},
			{`"startMode":"auto"`, "startMode"},
			{`"continuation":{"after":0.5}`, "continuation.after"},
			{`"continuation":{"events":9}`, "continuation.events"},
		} {
			var r schemas.StartResponse
			f.apiInto(&r, "start", `{"workflowId":"x","type":"order",`+tt.body+`}`)
			if r.Error == nil || r.Error.Code != schemas.CodeInvalid || r.Error.Field != tt.field || r.Error.Hint == "" {
				t.Errorf("%s: got %+v", tt.body, r.Error)
			}
		}
	})
}

// A start that says until when it may begin a run begins none later, whatever has become of an earlier run of the same id. A repeat of one that
// has begun is answered.
func TestAStartComesTooLate(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", signaled)
		first := f.node("a", nil)
		body := func(id, more string) string {
			return fmt.Sprintf(`{"workflowId":%q,"run":"r-%s","type":"order","notAfter":%q%s}`, id, id, time.Now().Add(time.Minute).UTC().Format(time.RFC3339Nano), more)
		}
		start := func(body string) (r schemas.StartResponse) {
			f.apiInto(&r, "start", body)
			return r
		}
		late := func(r schemas.StartResponse) {
			t.Helper()
			if r.Error == nil || r.Error.Code != schemas.CodeConflict || r.Error.Field != "notAfter" || r.Error.Hint == "" {
				t.Fatalf("got %+v, %+v", r, r.Error)
			}
		}
		o, never := body("o", ""), body("never", "")
		replaces := body("o", `,"idConflictPolicy":"TERMINATE_EXISTING"`)
		replaces = strings.Replace(replaces, "r-o", "r-2", 1)
		if r := start(o); !r.Started {
			t.Fatalf("got %+v", r)
		}
		time.Sleep(2 * time.Minute)
		if r := start(o); r.Error != nil || r.Started || r.Run != "r-o" {
			t.Fatalf("a repeat: got %+v, %+v", r, r.Error)
		}
		late(start(never))
		late(start(replaces))
		if status := f.status("o"); status != schemas.StatusOpen {
			t.Fatalf("the open run is %s", status)
		}
		f.publish("drover.default.signal.o.s", "")
		f.completes("o")
		if r := start(o); r.Error != nil || r.Started {
			t.Fatalf("a repeat after the end: got %+v, %+v", r, r.Error)
		}
		// The run is purged, and its owner forgotten.
		first.stop()
		s, err := f.js.Stream(t.Context(), ns.StreamHistory(0))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Purge(t.Context(), jetstream.WithPurgeSubject(ns.History(0, "o", "r-o"))); err != nil {
			t.Fatal(err)
		}
		f.node("b", nil)
		late(start(o))
	})
}

// S2-2, S2-4, S2-6: before a recycle of its node a broker asks the runs with a continuation policy of which nothing is open, those too that sleep or are
// not in memory, and writes nothing about any other.
func TestRunsAreAskedBeforeARecycle(t *testing.T) {
	virtually(t, 4, func(t *testing.T, f *fleet) {
		var reasons []string
		f.decider("order", func(d *decisionTask) string {
			switch {
			case d.SuggestContinueAsNew:
				reasons = append(reasons, d.ContinueReasons...)
				return continueAsNew
			case strings.HasPrefix(d.WorkflowID, "busy") && d.has("Signal"):
				return "[" + scheduleActivity("A", "") + "]"
			}
			return "[]"
		})
		first := f.node("a", nil)
		const each = 40
		for i := range each {
			for kind, more := range map[string]string{"quiet": `,"continuation":{}`, "busy": `,"continuation":{"after":3600}`, "held": `,"continuation":{}`, "new": `,"continuation":{}`, "plain": ""} {
				id := fmt.Sprint(kind, i)
				f.start(fmt.Sprintf(`{"workflowId":%q,"type":"order"%s}`, id, more))
				if kind != "new" {
					f.publish("drover.default.signal."+id+".s", "")
				}
				if kind == "held" {
					f.api("hold", fmt.Sprintf(`{"workflowId":%q}`, id))
				}
			}
		}
		time.Sleep(time.Minute)
		for round, owner := range []*node{first, nil} { // with the runs in memory, and without
			if owner == nil {
				first.stop()
				owner = f.node("b", nil)
				f.api("describe", `{"workflowId":"quiet0"}`)
				for i := range each {
					f.publish(fmt.Sprintf("drover.default.signal.quiet%d.s", i), "")
				}
				time.Sleep(time.Minute)
			}
			before := f.lastEvent("busy1") + f.lastEvent("held1") + f.lastEvent("new1") + f.lastEvent("plain1")
			asked, err := owner.broker.SuggestContinuations(t.Context())
			if err != nil || asked != each {
				t.Fatalf("round %d: asked %d runs, %v; want %d", round, asked, err, each)
			}
			time.Sleep(time.Minute)
			if len(reasons) != each*(round+1) || slices.ContainsFunc(reasons, func(r string) bool { return r != schemas.ContinueRecycle }) {
				t.Fatalf("round %d: deciders were asked because of %q", round, reasons)
			}
			if runs := f.linksOf("quiet1"); len(runs) != round+2 {
				t.Fatalf("round %d: the chain has %d runs", round, len(runs))
			}
			if after := f.lastEvent("busy1") + f.lastEvent("held1") + f.lastEvent("new1") + f.lastEvent("plain1"); after != before {
				t.Fatalf("round %d: the others have %d events, want %d", round, after, before)
			}
		}
	})
}

// S2-7: the run that continues goes to the worker that has decided for the run before it, without the API.
func TestAContinuationStaysWithItsWorker(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		decide := func(d *schemas.DecisionTask, _ int) []schemas.Decision {
			if d.SuggestContinueAsNew {
				return []schemas.Decision{schemas.Decide(&schemas.ContinueAsNew{})}
			}
			return nil
		}
		w1, w2 := f.plays("w1", decide), f.plays("w2", decide)
		w1.lives()
		w2.lives()
		calls := 0
		f.node("a", func(subj string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, "drover.default.api.") {
				calls++
			}
			return cutwire.Pass
		})
		f.start(`{"workflowId":"o","run":"r1","type":"order","startMode":"AutoStart","continuation":{"after":60}}`)
		for range 20 {
			f.publish("drover.default.signal.o.s", "")
			time.Sleep(45 * time.Second)
		}
		if runs := f.linksOf("o"); len(runs) < 8 {
			t.Fatalf("%d runs", len(runs))
		}
		if n, m := len(w1.asks()), len(w2.asks()); n != 0 && m != 0 || calls > 0 {
			t.Errorf("one worker was asked %d times and the other %d times, want all of one; the node called the API %d times", n, m, calls)
		}
	})
}
