package broker_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

var signalsFor = flag.Duration("signals-for", 10*time.Second, "how long signals keep coming in TestContinuesUnderSignals; 2m for the whole")

// flood sends a numbered signal every 5 ms for a while to a run whose decider takes so long to decide, and continues as new
// from some event on. At its end the run completes by a signal of its own.
type flood struct {
	lasts, decides time.Duration
	from           int64 // the event
	size           int   // of each signal, in bytes
	judge          func(string, []byte) cutwire.Verdict
}

// seenSignals are those that deciders have seen, in this order. What is shown again does not count.
type seenSignals struct {
	sync.Mutex
	signals []string
	last    map[string]int64 // by run
}

// see takes the window of a decision, and tells whether the last signal is in it.
func (s *seenSignals) see(f *fleet, d *decisionTask) (end bool) {
	s.Lock()
	defer s.Unlock()
	run, _, _ := strings.Cut(d.Token, ".")
	for _, e := range windowOf(f, d, run) {
		a, ok := e.Attributes.(*schemas.Signal)
		if !ok {
			continue
		}
		end = end || a.SignalName == "end"
		if e.ID > s.last[run] && a.SignalName == "s" {
			s.last[run] = e.ID
			s.signals = append(s.signals, numberOf(a))
		}
	}
	return end
}

// windowOf reads the window of a decision from the history, since it need not fit the task.
func windowOf(f *fleet, d *decisionTask, run string) (events []schemas.Event) {
	f.t.Helper()
	limit := time.Now().Add(time.Minute)
	for after := d.PreviousStartedID; after < d.StartedID-1; {
		var page schemas.HistoryResponse
		q := fmt.Sprintf(`{"workflowId":"o","run":%q,"after":%d}`, run, after)
		f.apiInto(&page, "history", q)
		if page.Error != nil {
			f.t.Errorf("history %s: %v", q, page.Error)
			return nil
		}
		if len(page.Events) == 0 {
			if time.Now().After(limit) {
				f.t.Errorf("run %s has no events after %d, and a task of event %d", run, after, d.StartedID)
				return nil
			}
			time.Sleep(time.Millisecond) // the clock of a bubble stands still while somebody asks again at once
		}
		for _, e := range page.Events {
			if after = e.ID; after < d.StartedID {
				events = append(events, e)
			}
		}
	}
	return events
}

func numberOf(a *schemas.Signal) string {
	return strings.TrimLeft(strings.Trim(string(a.Input), `"`), "x")
}

func (o flood) play(t *testing.T, f *fleet) {
	decided := &seenSignals{last: map[string]int64{}}
	ended := false
	f.decider("order", func(d *decisionTask) string {
		time.Sleep(o.decides)
		ended = decided.see(f, d) || ended
		switch {
		case ended:
			return complete
		case d.StartedID >= o.from:
			return `[{"type":"ContinueAsNew","attributes":{}}]`
		}
		return "[]"
	})
	// With a snapshot every few events a new owner finds none of the unread signals beside the state.
	first := f.node("a", o.judge, func(b *broker.Options) { b.SnapshotEvents = 4 })
	defer f.relieve(first)()
	f.start(startO)
	n := 0
	for begun := time.Now(); time.Since(begun) < o.lasts; n++ {
		f.publish("drover.default.signal.o.s", fmt.Sprintf("%q", strings.Repeat("x", o.size)+fmt.Sprint(n)))
		time.Sleep(5 * time.Millisecond)
	}
	f.publish("drover.default.signal.o.end", "")
	f.completes("o")
	if o.judge != nil && !first.killed() {
		t.Fatal("the crash never came: nothing matched")
	}
	o.check(t, f, n, decided)
}

// check looks for each signal in the histories of the chain, once and in its order, and at what the deciders have seen.
func (o flood) check(t *testing.T, f *fleet, n int, decided *seenSignals) {
	t.Helper()
	var recorded []string
	runs, copies, held := 0, 0, 0
	var unread []schemas.Event
	p, filter := f.ofRuns("o")
	last := ""
	err := f.post.Scan(t.Context(), ns.StreamHistory(p), natsconn.ReadOptions{FilterSubjects: []string{filter}}, func(s natsconn.Stored) error {
		var r schemas.Record
		if err := schemas.Unmarshal(s.Data, &r); err != nil {
			return err
		}
		if r.Run != last {
			runs, last, held = runs+1, r.Run, 0
		}
		for _, e := range r.Events {
			switch a := e.Attributes.(type) {
			case *schemas.DeciderStarted:
				unread = nil
			case *schemas.WorkflowCloseFailed:
				if held++; a.Decision == schemas.DecideContinueAsNew && held > 3 {
					t.Errorf("run %d: continuation refused %d times in a row", runs, held)
				}
			case *schemas.Signal:
				if a.SignalName == "end" {
					continue
				}
				name := numberOf(a)
				if a.OriginRun == "" {
					recorded, unread = append(recorded, name), append(unread, e)
					continue
				}
				copies++
				if len(unread) == 0 || unread[0].ID != a.OriginEventID || string(unread[0].Attributes.(*schemas.Signal).Input) != string(a.Input) {
					t.Errorf("run %d: signal %.20q is a copy of event %d of run %s, which is not the next unread one", runs, name, a.OriginEventID, a.OriginRun)
					continue
				}
				unread = unread[1:]
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	inOrder(t, "in the histories", recorded, n)
	inOrder(t, "that deciders have seen", decided.signals, n)
	if runs < 2 || copies == 0 {
		t.Errorf("%d runs with %d copied signals; want at least two, and some", runs, copies)
	}
	if dead := f.dead(); len(dead) > 0 && o.judge == nil {
		t.Errorf("dead letters: %v", dead)
	}
	t.Logf("%d signals, %d of them copied, in %d runs", n, copies, runs)
}

func inOrder(t *testing.T, where string, got []string, n int) {
	t.Helper()
	for i, name := range got {
		if name != fmt.Sprint(i) {
			t.Fatalf("signal %s is number %d of those %s", name, i, where)
		}
	}
	if len(got) != n {
		t.Fatalf("%d signals %s, want %d", len(got), where, n)
	}
}

// R3. Signals come faster than decisions are made, and the run continues as new all the same, each time, and no signal is lost, comes twice
// or in another order.
func TestContinuesUnderSignals(t *testing.T) { // P-4
	virtually(t, 1, flood{lasts: *signalsFor, decides: 20 * time.Millisecond, from: 200}.play)
}

// R3. The owner dies between the record that ends the run and those that begin the next one, which have the signals that nobody has read.
func TestOwnerDiesBetweenContinuedRuns(t *testing.T) { // P-4
	for name, o := range map[string]flood{
		"small": {lasts: 500 * time.Millisecond, decides: 20 * time.Millisecond, from: 40},
		// The copies take several records.
		"large": {lasts: 500 * time.Millisecond, decides: 60 * time.Millisecond, from: 40, size: 80 << 10},
	} {
		for _, verdict := range []cutwire.Verdict{cutwire.CutBefore, cutwire.CutAfter} {
			for n := range 3 { // the record that ends the run, and those after it
				if verdict == cutwire.CutBefore && n > 0 {
					continue // as after the record before
				}
				t.Run(fmt.Sprintf("%s/%v/%d", name, verdict, n), func(t *testing.T) {
					o := o
					o.judge = laterUnread(n, verdict)
					virtually(t, 1, o.play)
				})
			}
		}
	}
}

// R3. From three quarters of the events that it may have on, the decider's tasks, describe, why and an audit say so.
func TestNearTheLimitOfEvents(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var left []int
		sub, err := f.nc.QueueSubscribe(ns.Decide("order"), "deciders", func(m *nats.Msg) {
			var task struct {
				Token                string
				SuggestContinueAsNew bool
				EventsLeft           int
			}
			if err := json.Unmarshal(m.Data, &task); err != nil || task.SuggestContinueAsNew != (task.EventsLeft > 0) {
				t.Errorf("%v: %s", err, m.Data)
			}
			left = append(left, task.EventsLeft)
			if err := m.Respond([]byte(`{"token":"` + task.Token + `","decisions":[]}`)); err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		f.flush()
		f.node("a", nil, func(o *broker.Options) { o.Execution.MaxEvents = 40 })
		f.start(startO)
		says := func() (described, audited float64, why string) {
			time.Sleep(time.Second)
			described, _ = f.api("describe", `{"workflowId":"o"}`)["eventsLeft"].(float64)
			runs, _ := f.api("audit", `{"partition":0,"workflows":["o"]}`)["runs"].([]any)
			if run, ok := runs[0].(map[string]any); ok {
				audited, _ = run["eventsLeft"].(float64)
			}
			return described, audited, f.why("o")
		}
		if d, a, why := says(); d != 0 || a != 0 || strings.Contains(why, "events") {
			t.Fatalf("at its beginning the run has %v and %v events left, %s", d, a, why)
		}
		for range 7 { // four events each
			f.publish("drover.default.signal.o.s", "1")
			time.Sleep(time.Second)
		}
		d, a, why := says()
		if d != 140-32 || a != d || !strings.Contains(why, "its history has 32 events: from 40 on nothing may lengthen it, and after 108 more it is terminated") {
			t.Fatalf("the run has %v and %v events left, %s", d, a, why)
		}
		if err := sub.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
		f.flush()
		if got := left[len(left)-1]; got == 0 || left[0] != 0 {
			t.Fatalf("the decider was told %v", left)
		}
	})
}

// laterUnread is laterContinuation of a run that has left signals unread.
func laterUnread(n int, v cutwire.Verdict) func(string, []byte) cutwire.Verdict {
	continued := false
	return func(subj string, message []byte) cutwire.Verdict {
		if !strings.HasPrefix(subj, "drover.default.history.0.o.") {
			return cutwire.Pass
		}
		var r schemas.Record
		_, body, _ := bytes.Cut(message, []byte("\r\n\r\n"))
		if !continued && schemas.Unmarshal(body, &r) == nil && len(r.Events) > 0 {
			a, ok := r.Events[len(r.Events)-1].Attributes.(*schemas.WorkflowContinuedAsNew)
			continued = ok && a.UnreadSignals > 0
		}
		if continued {
			if n--; n == -1 {
				return v
			}
		}
		return cutwire.Pass
	}
}
