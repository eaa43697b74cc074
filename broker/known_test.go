package broker_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// lookUps counts the questions which run of an id is the latest.
func lookUps(looks *atomic.Int64) func(string, []byte) cutwire.Verdict {
	return func(subj string, body []byte) cutwire.Verdict {
		if strings.HasSuffix(subj, "GET."+ns.StreamHistory(0)) && strings.HasPrefix(string(body), `{"last_by_subj":`) {
			looks.Add(1)
		}
		return cutwire.Pass
	}
}

// The owner looks for runs of an id only if the history may have some, be they its own or those of an owner before it.
func TestUnusedIDsAreNotLookedFor(t *testing.T) { // P-2, P-5
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var looks atomic.Int64
		begin := func(n *node) *node {
			time.Sleep(5 * time.Second) // it has listed the ids
			looks.Store(0)
			return n
		}
		a := begin(f.node("a", lookUps(&looks)))
		f.decider("order", func(*decisionTask) string { return complete })
		f.decider("wait", sleeper)
		const n = 30
		for i := range n {
			f.start(fmt.Sprintf(`{"workflowId":"a%d","type":"order","run":"r%d"}`, i, i))
		}
		f.start(`{"workflowId":"open","type":"wait","run":"o1"}`)
		if got := looks.Load(); got != 0 {
			t.Errorf("%d unused ids were looked for %d times", n, got)
		}
		f.completes("a7")
		a.stop()
		begin(f.node("b", lookUps(&looks)))
		for i := range n {
			f.start(fmt.Sprintf(`{"workflowId":"b%d","type":"order"}`, i))
		}
		if got := looks.Load(); got != 0 {
			t.Errorf("%d ids that the former owner did not use were looked for %d times", n, got)
		}
		for _, tc := range []struct{ name, start, run, code string }{
			{"a repeat", `{"workflowId":"a7","type":"order","run":"r7"}`, "r7", ""},
			{"a closed one", `{"workflowId":"a8","type":"order","run":"again","idReusePolicy":"REJECT"}`, "r8", "already_started"},
			{"an open one", `{"workflowId":"open","type":"wait","run":"o2"}`, "o1", "already_started"},
			{"one that may be used again", `{"workflowId":"a9","type":"order","run":"again"}`, "again", ""},
		} {
			got := f.api("start", tc.start)
			code := ""
			if e, ok := got["error"].(map[string]any); ok {
				code = fmt.Sprint(e["code"])
			}
			if got["run"] != tc.run || code != tc.code {
				t.Errorf("%s: got %v, want run %s and error %q", tc.name, got, tc.run, tc.code)
			}
		}
	})
}

// A record of an id that the owner does not know is stored after its listing, as the late write of a former owner would be. The
// server lets no second run begin beside it, not even where that is on its way after the write which is refused for it.
func TestRunsOfOthersAreMet(t *testing.T) { // P-2
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", sleeper)
		f.start(`{"workflowId":"first","type":"order"}`)
		time.Sleep(5 * time.Second)
		last, err := f.post.LastBySubject(t.Context(), ns.StreamHistory(0), ns.HistoryOfWorkflow(0, "first"))
		if err != nil {
			t.Fatal(err)
		}
		large := strings.Repeat("x", 70<<10) // no record of such a size waits for its decision
		for i := range 5 {
			theirs := fmt.Sprintf("theirs%d", i)
			f.foreign(last, theirs)
			for _, id := range []string{theirs + "-", theirs, theirs + "+"} {
				body := `{"workflowId":"` + id + `","type":"order","run":"m1","input":"` + large + `"}`
				if err := f.nc.PublishRequest(ns.API("start"), f.nc.NewInbox(), []byte(body)); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(30 * time.Second)
			if got := f.runsOf(theirs); len(got) != 1 || got[0] != "t1" {
				t.Fatalf("the id has the runs %v, want t1 alone", got)
			}
			if got := f.api("start", `{"workflowId":"`+theirs+`","type":"order","run":"m2"}`)["run"]; got != "t1" {
				t.Errorf("a start meets run %v, want t1", got)
			}
		}
	})
}

// foreign stores the first record of a run as that of another workflow's run t1, as another owner would.
func (f *fleet) foreign(like *natsconn.Stored, wid string) {
	f.t.Helper()
	var r schemas.Record
	if err := schemas.Unmarshal(like.Data, &r); err != nil {
		f.t.Fatal(err)
	}
	r.WorkflowID, r.Run = wid, "t1"
	for i := range r.Events {
		if s, ok := r.Events[i].Attributes.(*schemas.WorkflowStarted); ok {
			s.WorkflowID, s.Run = wid, "t1"
		}
	}
	body, err := schemas.Marshal(&r)
	if err == nil {
		_, err = f.post.PublishSync(f.t.Context(), ns.History(0, wid, "t1"), natsconn.Header{schemas.StatusHeader: like.Header[schemas.StatusHeader]}, body)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}
