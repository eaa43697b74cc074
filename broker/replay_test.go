package broker_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// ended starts "o" and waits until it has failed; what is judged later is armed then. Other runs complete from then on. The decider is
// one in another language, which knows no replays.
func (f *fleet) ended() {
	f.t.Helper()
	var mended atomic.Bool
	f.decider("order", func(d *decisionTask) string {
		switch {
		case !d.has("WorkflowStarted"):
			return "[]"
		case mended.Load():
			return complete
		}
		return `[{"type":"FailWorkflow","attributes":{"reason":"broken"}}]`
	})
	for f.start(startO)["error"] != nil {
		time.Sleep(100 * time.Millisecond)
	}
	if got := f.result("o"); got != "failed" {
		f.t.Fatalf("o is %s, want failed", got)
	}
	mended.Store(true)
}

// replay asks until there is an answer that is none about the servers.
func (f *fleet) replay(verb, body string) map[string]any {
	f.t.Helper()
	for range 600 {
		a := f.api(verb, body)
		if e, _ := a["error"].(map[string]any); e == nil || e["code"] != "unavailable" && e["code"] != "timeout" {
			return a
		}
		time.Sleep(100 * time.Millisecond)
	}
	f.t.Fatalf("%s %s: nobody can", verb, body)
	return nil
}

// With a crash at every publish of a replay, before and after it, or a message that is lost or comes twice, the same request
// begins one run, and is answered with that one for ever.
func TestReplayHappensOnce(t *testing.T) { // P-5
	for name, v := range map[string]cutwire.Verdict{"crash before": cutwire.CutBefore, "crash after": cutwire.CutAfter, "lost": cutwire.Swallow, "twice": cutwire.Twice} {
		for prefix, writes := range map[string]int{"drover.default.history.": 2, "drover.default.decide.": 2, "_INBOX.": 3} {
			for n := 1; n <= writes; n++ {
				t.Run(fmt.Sprint(name, " ", prefix, " ", n), func(t *testing.T) { replaysOnce(t, nth(n, prefix, v)) })
			}
		}
	}
}

func replaysOnce(t *testing.T, judge func(string, []byte) cutwire.Verdict) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var mu sync.Mutex
		armed := false
		a := f.node("a", func(subj string, body []byte) cutwire.Verdict {
			mu.Lock()
			defer mu.Unlock()
			if !armed {
				return cutwire.Pass
			}
			return judge(subj, body)
		})
		f.ended()
		defer f.relieve(a)()
		mu.Lock()
		armed = true
		mu.Unlock()
		const body = `{"workflowId":"o","from":"start","requestId":"q","reason":"mended"}`
		first := f.replay("replay", body)
		run, _ := first["run"].(string)
		if first["error"] != nil || run == "" || run == "r1" {
			t.Fatalf("got %v", first)
		}
		f.completesAtLast("o")
		if again := f.replay("replay", body); again["run"] != run || again["started"] != false {
			t.Errorf("a repeat: got %v, want run %s again", again, run)
		}
		var by any
		for range 100 { // while an owner is gone a page may come without
			if by = f.replay("history", `{"workflowId":"o","run":"r1"}`)["replayedBy"]; by == run {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if by != run {
			t.Errorf("the history of the old run says it is replayed by %v, want %s", by, run)
		}
		for f.start(`{"workflowId":"o","type":"order","run":"r3","requestId":"q"}`)["error"] != nil { // no repeat of the replay
			time.Sleep(100 * time.Millisecond)
		}
		f.completesAtLast("o")
		if again := f.replay("replay", body); again["run"] != run {
			t.Errorf("a late repeat: got %v, want run %s again", again, run)
		}
		if got := f.runsOf("o"); !slices.Equal(got, []string{"r1", run, "r3"}) {
			t.Errorf("the runs are %v, want r1, %s and r3", got, run)
		}
	})
}

// Two operators replay the same run at once: one run begins, the other request is refused or comes to a replay of its own later.
func TestTwoReplaysAtOnce(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.ended()
		var both sync.WaitGroup
		answers := make([]map[string]any, 2)
		for i := range answers {
			both.Go(func() {
				answers[i] = f.api("replay", fmt.Sprintf(`{"workflowId":"o","run":"r1","from":"start","latestOnly":true,"requestId":"q%d"}`, i))
			})
		}
		both.Wait()
		f.completes("o")
		started := 0
		for _, a := range answers {
			if a["started"] == true {
				started++
			}
		}
		if n := len(f.runsOf("o")); n != 1+started || started < 1 {
			t.Errorf("%d runs and the answers %v", n, answers)
		}
	})
}

// What a request from outside says of a replay of its own is dropped: only the owner begins one.
func TestStartsClaimNoReplay(t *testing.T) { // hostile
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.ended()
		f.start(`{"workflowId":"o","type":"order","run":"r2","replays":{"run":"r1","from":"start"}}`)
		f.completes("o")
		f.publish(ns.In(0, "o", "start"), `{"workflowId":"o","type":"order","run":"r3","replays":{"run":"r1","from":"start"}}`)
		for len(f.runsOf("o")) < 3 {
			time.Sleep(time.Second)
		}
		f.completes("o")
		if err := f.nc.PublishMsg(&nats.Msg{
			Subject: ns.Owner(0), Header: nats.Header{"Drover-Verb": {"start"}}, Data: []byte(`{"workflowId":"o","type":"order","run":"r4","replays":{"run":"r1","from":"start"}}`),
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		runs := f.runsOf("o")
		if len(runs) != 4 {
			t.Errorf("the runs are %v, want four", runs)
		}
		for _, run := range runs {
			if s, ok := f.eventsOf("o", run)[0].Attributes.(*schemas.WorkflowStarted); !ok || s.Replays != nil {
				t.Errorf("run %s begins with %+v", run, s)
			}
		}
	})
}

// Bad requests name the field; a decider that answers nonsense, or not at all, is told of.
func TestReplayRequestsThatAreRefused(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.ended()
		f.start(`{"workflowId":"c","type":"chain","run":"c1"}`)
		f.decider("chain", func(d *decisionTask) string {
			if d.has("WorkflowStarted") {
				return `[{"type":"ContinueAsNew"}]`
			}
			return ""
		})
		f.await("c", schemas.EventWorkflowStarted)
		for _, tc := range []struct{ body, code, want string }{
			{`{"workflowId":""}`, "invalid_argument", "workflowId"},
			{`{"workflowId":"o","run":"a\u0001"}`, "invalid_argument", "run"},
			{`{"workflowId":"o","from":"` + strings.Repeat("x", 300) + `"}`, "invalid_argument", "from"},
			{`{"workflowId":"o","reason":"` + strings.Repeat("x", 1025) + `"}`, "invalid_argument", "reason"},
			{`{"workflowId":5}`, "invalid_argument", "workflowId: want a text, got a numberworkflowId"},
			{`{"workflowId":"x","from":"start"}`, "not_found", `"x"`},
			{`{"workflowId":"o","run":"r9"}`, "not_found", "gone by its retention"},
			{`{"workflowId":"o"}`, "conflict", "from start only"},
			{`{"workflowId":"c","run":"c1","from":"start"}`, "conflict", ""},
		} {
			a := f.api("replay", tc.body)
			e, _ := a["error"].(map[string]any)
			if e == nil || e["code"] != tc.code || !strings.Contains(fmt.Sprint(e["message"], e["field"]), tc.want) {
				t.Errorf("%.80s: got %v, want %s about %q", tc.body, a, tc.code, tc.want)
			}
		}
		if runs := f.runsOf("o"); len(runs) != 1 {
			t.Errorf("the runs of o are %v, want no more than the first", runs)
		}
	})
}

// To tell of a run that nothing repeats costs no consumer, also when it is read anew from the history.
func TestNothingRepeatsTheLatestRun(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var consumers atomic.Int64
		f.node("a", func(subj string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, "$JS.API.CONSUMER.CREATE."+ns.StreamHistory(0)) {
				consumers.Add(1)
			}
			return cutwire.Pass
		})
		f.ended()
		time.Sleep(20 * time.Second) // from here on it may be purged, so it is looked for
		before := consumers.Load()
		if a := f.api("describe", `{"workflowId":"o"}`); a["attempts"] != nil {
			t.Errorf("got attempts %v, want none", a["attempts"])
		}
		f.types("o")
		if got := consumers.Load() - before; got != 0 {
			t.Errorf("got %d consumers, want none", got)
		}
	})
}
