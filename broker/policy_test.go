package broker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// ending ends each run as its input says: "complete", "fail" or "stay".
func ending(d *decisionTask) string {
	for _, e := range d.Events {
		if e.Type == "WorkflowStarted" {
			switch e.Attributes["input"] {
			case "complete":
				return complete
			case "fail":
				return `[{"type":"FailWorkflow","attributes":{"reason":"as told"}}]`
			}
		}
	}
	return "[]"
}

// code is the code of the error in an answer, "" without one.
func code(a map[string]any) string {
	e, _ := a["error"].(map[string]any)
	c, _ := e["code"].(string)
	return c
}

func TestIDReusePolicies(t *testing.T) {
	for _, tc := range []struct {
		last   string
		policy schemas.IDReusePolicy
		want   string
	}{
		{"complete", "", ""},
		{"complete", schemas.ReuseAllow, ""},
		{"complete", schemas.ReuseAllowFailed, "already_started"},
		{"complete", schemas.ReuseReject, "already_started"},
		{"fail", schemas.ReuseAllowFailed, ""},
		{"fail", schemas.ReuseReject, "already_started"},
	} {
		t.Run(tc.last+"/"+string(tc.policy), func(t *testing.T) {
			virtually(t, 4, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				f.decider("order", ending)
				f.start(`{"workflowId":"o","type":"order","run":"r1","input":"` + tc.last + `"}`)
				f.result("o")
				a := f.start(`{"workflowId":"o","type":"order","run":"r2","input":"stay","idReusePolicy":"` + string(tc.policy) + `"}`)
				if code(a) != tc.want {
					t.Fatalf("answer %v, want code %q", a, tc.want)
				}
				if want := map[bool]string{true: "r2", false: "r1"}[tc.want == ""]; a["run"] != want {
					t.Fatalf("answer %v, want run %s", a, want)
				}
			})
		})
	}
}

func TestIDConflictPolicies(t *testing.T) {
	for _, tc := range []struct {
		policy     schemas.IDConflictPolicy
		code, run  string
		started    bool
		afterwards string
	}{
		{"", "already_started", "r1", false, "r1"},
		{schemas.ConflictFail, "already_started", "r1", false, "r1"},
		{schemas.ConflictUseExisting, "", "r1", false, "r1"},
		{schemas.ConflictTerminateExisting, "", "r2", true, "r2"},
	} {
		t.Run(string(tc.policy), func(t *testing.T) {
			virtually(t, 4, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				f.decider("order", ending)
				f.start(`{"workflowId":"o","type":"order","run":"r1","input":"stay"}`)
				again := `{"workflowId":"o","type":"order","run":"r2","input":"stay","idConflictPolicy":"` + string(tc.policy) + `"}`
				a := f.start(again)
				if code(a) != tc.code || a["run"] != tc.run || a["started"] != tc.started {
					t.Fatalf("answer %v, want %+v", a, tc)
				}
				if tc.started { // a repeat gets the same run, and ends nothing
					if a := f.start(again); a["error"] != nil || a["run"] != "r2" || a["started"] != false {
						t.Fatalf("the repeat was answered %v", a)
					}
				}
				if s := f.events("o")[0].Attributes.(*schemas.WorkflowStarted); s.Run != tc.afterwards {
					t.Fatalf("run %s is there, want %s", s.Run, tc.afterwards)
				}
			})
		})
	}
}

// The owner may die at any record of a replacement: the old run ends once and the new one begins once.
func TestOwnerDiesInAReplacement(t *testing.T) {
	for _, verdict := range []cutwire.Verdict{cutwire.CutBefore, cutwire.CutAfter} {
		for _, place := range []string{"drover.default.history.0.o.r1", "drover.default.history.0.o.r2"} {
			t.Run(fmt.Sprintf("%d/%s", verdict, place), func(t *testing.T) {
				virtually(t, 1, func(t *testing.T, f *fleet) {
					f.decider("order", ending)
					calm := f.node("calm", nil)
					f.start(`{"workflowId":"o","type":"order","run":"r1","input":"stay"}`)
					f.await("o", schemas.EventDeciderCompleted)
					calm.stop()
					first := f.node("a", nth(1, place, verdict))
					f.publish(ns.In(0, "o", "start"), `{"workflowId":"o","type":"order","run":"r2","input":"complete","idConflictPolicy":"TERMINATE_EXISTING"}`)
					first.waitKilled()
					f.node("b", nil)
					if got := f.api("result", `{"workflowId":"o","run":"r2","wait":60}`)["status"]; got != "completed" {
						time.Sleep(time.Minute)
						if got := f.api("result", `{"workflowId":"o","run":"r2","wait":60}`)["status"]; got != "completed" {
							t.Fatalf("the new run is %v", got)
						}
					}
					if got := f.api("result", `{"workflowId":"o","run":"r1"}`)["status"]; got != "terminated" {
						t.Fatalf("the old run is %v", got)
					}
				})
			})
		}
	}
}

func TestBadPolicies(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		for body, field := range map[string]string{
			`"idReusePolicy":"SOMETIMES"`:                                      "idReusePolicy",
			`"idConflictPolicy":"MAYBE"`:                                       "idConflictPolicy",
			`"idReusePolicy":"REJECT","idConflictPolicy":"TERMINATE_EXISTING"`: "idReusePolicy",
			`"childPolicy":"EAT"`:                                              "childPolicy",
			`"signal":{"name":""}`:                                             "signal.name",
			`"signal":{"name":"s"},"idConflictPolicy":"FAIL"`:                  "idConflictPolicy",
			`"tagList":["1","2","3","4","5","6"]`:                              "tagList",
			`"activityDefaults":{"list":"no spaces here"}`:                     "activityDefaults.list",
			`"run":"a.b"`: "run",
			`"signal":{"name":"s","input":1},"idReusePolicy":"ALWAYS","run":"r1"`: "idReusePolicy",
		} {
			a := f.start(`{"workflowId":"o","type":"order",` + body + `}`)
			e, _ := a["error"].(map[string]any)
			if e["code"] != "invalid_argument" || e["field"] != field {
				t.Errorf("%s was answered %v, want a refusal of %s", body, a, field)
			}
		}
	})
}

func TestSignalWithStart(t *testing.T) {
	virtually(t, 4, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", func(d *decisionTask) string { return "[]" })
		body := func(run, request string) string {
			return `{"workflowId":"o","type":"order","run":"` + run + `","requestId":"` + request + `","signal":{"name":"go","input":1}}`
		}
		if a := f.start(body("r1", "q1")); a["run"] != "r1" || a["started"] != true {
			t.Fatalf("the first was answered %v", a)
		}
		if a := f.start(body("r1", "q1")); a["run"] != "r1" || a["started"] != false || a["error"] != nil {
			t.Fatalf("its repeat was answered %v", a)
		}
		for range 2 {
			if a := f.start(body("r2", "q2")); a["run"] != "r1" || a["started"] != false || a["error"] != nil {
				t.Fatalf("the second was answered %v", a)
			}
		}
		signals := 0
		for _, e := range f.events("o") {
			if e.Type() == schemas.EventSignal {
				signals++
			}
		}
		if signals != 2 {
			t.Fatalf("%d signals, want one of each request: %v", signals, f.types("o"))
		}
		if got := f.types("o")[:3]; got[1] != "DeciderScheduled" || got[2] != "Signal" {
			t.Fatalf("the run began %v", got)
		}
	})
}

// A signal-with-start meets a run that is about to close: it signals that one, or starts the next; never neither or both.
func TestSignalWithStartRacesAClose(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", signaled)
		for i := range 200 {
			run := fmt.Sprintf("r%d", i)
			a := f.start(`{"workflowId":"o","type":"order","run":"` + run + `","signal":{"name":"go"}}`)
			if a["error"] != nil {
				t.Fatalf("start %d was answered %v", i, a)
			}
			if i%3 == 0 {
				f.flush()
			}
		}
		f.result("o")
		// Every start has its signal in the run that it was answered with; the checker of histories finds doubles.
		list, _ := f.api("list", `{"workflowId":"o","limit":1000}`)["executions"].([]any)
		signals := 0
		for _, x := range list {
			run, _ := x.(map[string]any)["run"].(string)
			for _, e := range f.eventsOf("o", run) {
				if e.Type() == schemas.EventSignal {
					signals++
				}
			}
		}
		if signals != 200 {
			t.Fatalf("%d signals in %d runs, want 200", signals, len(list))
		}
		if letters := f.dead(); len(letters) != 0 {
			t.Fatalf("dead letters %v", letters)
		}
	})
}

// eventsOf returns the first page of one run's events.
func (f *fleet) eventsOf(id, run string) []schemas.Event {
	f.t.Helper()
	var page schemas.HistoryResponse
	if err := schemas.Unmarshal(f.request(ns.API("history"), `{"workflowId":"`+id+`","run":"`+run+`"}`), &page); err != nil {
		f.t.Fatal(err)
	}
	return page.Events
}

func TestThousandStartsOfOneID(t *testing.T) {
	virtually(t, 4, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", func(*decisionTask) string { return "[]" })
		const n = 1000
		type answer struct {
			run string
			err string
		}
		answers := make(chan answer, n)
		for i := range n {
			go func() {
				a := f.start(fmt.Sprintf(`{"workflowId":"o","type":"order","run":"r%d"}`, i))
				run, _ := a["run"].(string)
				answers <- answer{run, code(a)}
			}()
		}
		won, runs := 0, map[string]int{}
		for range n {
			a := <-answers
			runs[a.run]++
			if a.err == "" {
				won++
			} else if a.err != "already_started" {
				t.Fatalf("answer %+v", a)
			}
		}
		if won != 1 || len(runs) != 1 {
			t.Fatalf("%d starts won and %d runs were named, want 1 of each", won, len(runs))
		}
	})
}
