package checker_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/schemas"
)

const (
	firstRun = `
		WorkflowStarted run=r1 requestId=start1
		DeciderScheduled
		---
		Signal s requestId=sig1
		DeciderStarted
		DeciderCompleted
		WorkflowSuccess`
	firstContinues = `
		WorkflowStarted run=r1 requestId=start1 workflowType=T workflowTypeVersion=v1 parentWorkflowExecution={"workflowId":"p","run":"p1"} parentScheduledEventId=5 depth=1
		DeciderScheduled
		---
		Signal s requestId=sig1
		WorkflowCancelRequested requestId=cancel1
		DeciderStarted
		DeciderCompleted
		WorkflowContinuedAsNew newExecutionRun=r2 workflowType=T workflowTypeVersion=v2 input=7`
	secondRun = `
		WorkflowStarted run=r2 requestId=start2
		DeciderScheduled`
	failedRun = `
		WorkflowStarted run=r1 requestId=start1 workflowType=T workflowTypeVersion=v1
		DeciderScheduled
		---
		DeciderStarted
		DeciderCompleted
		WorkflowFailed reason=broken`
	failedUnkept = `
		WorkflowStarted run=r1 requestId=start1 workflowType=T workflowTypeVersion=v1
		DeciderScheduled
		---
		DeciderStarted
		DeciderCompleted
		RetentionSet retention=disabled policy={"disk":"3","soft":"3","disabled":true}
		WorkflowFailed reason=broken`
	replayRun = `
		WorkflowStarted run=r2 requestId=start2 workflowType=T workflowTypeVersion=v1 replays={"run":"r1","from":"end","force":true}
		DeciderScheduled`
	lockedContinues = `
		WorkflowStarted run=r1
		DeciderScheduled
		DeciderStarted
		DeciderCompleted
		LockRequested L
		LockRequested M
		---
		LockAcquired L fence=7
		DeciderScheduled
		DeciderStarted
		DeciderCompleted
		LockReleased M deciderCompletedEventId=0
		WorkflowContinuedAsNew newExecutionRun=r2`
	secondLocked = `
		WorkflowStarted run=r2 continuedExecutionRun=r1 firstExecutionRun=r1 locks=[{"lock":"L","fence":7,"run":"r1","eventId":5}]
		DeciderScheduled`
	secondContinues = `
		WorkflowStarted run=r2 requestId=start1 continuedExecutionRun=r1 firstExecutionRun=r1 signalIds=["sig1"] requestIds=["cancel1"] workflowType=T workflowTypeVersion=v2 input=7 parentWorkflowExecution={"workflowId":"p","run":"p1"} parentScheduledEventId=5 depth=1
		DeciderScheduled`
)

// runs are the records of one workflow id in the order of the stream; each run is chained by itself.
func runs(t *testing.T, first, next string) []*schemas.Record {
	a, b := records(t, "r1", first), records(t, "r2", next)
	for _, r := range b {
		r.Inbox.Sequence += 10
	}
	return append(a, b...)
}

func checkRuns(t *testing.T, all []*schemas.Record) []checker.Violation {
	t.Helper()
	byRun := make(map[string][]*schemas.Record)
	for _, r := range all {
		byRun[r.Run] = append(byRun[r.Run], r)
	}
	bodies := make(map[*schemas.Record][]byte)
	for _, of := range byRun {
		for _, s := range store(t, of) {
			bodies[s.Record] = s.Body
		}
	}
	w := checker.NewWorkflow("w")
	var found []checker.Violation
	for _, r := range all {
		found = append(found, w.Record(r, bodies[r], 0)...)
	}
	return append(found, w.End()...)
}

func TestWorkflowsPass(t *testing.T) {
	for name, all := range map[string][]*schemas.Record{
		"no run":                     nil,
		"one run":                    records(t, "r1", firstRun),
		"one after the other":        runs(t, firstRun, secondRun),
		"continued":                  runs(t, firstContinues, secondContinues),
		"predecessor is removed":     records(t, "r2", secondContinues),
		"replayed":                   runs(t, failedRun, replayRun),
		"replayed, kept again":       runs(t, strings.Replace(failedUnkept, "WorkflowFailed", "RetentionSet retention=\"3\" policy={\"disk\":\"3\",\"soft\":\"3\"}\nWorkflowFailed", 1), replayRun),
		"replayed from its start":    runs(t, firstRun, strings.NewReplacer("end", "start", " workflowType=T workflowTypeVersion=v1", "").Replace(replayRun)),
		"what it repeats is removed": records(t, "r2", replayRun),
		"continued with a lock":      runs(t, lockedContinues, secondLocked),
		"continued without a lock": runs(t, strings.Replace(firstContinues, "---\n", "---\nLockBroken L requestId=break1\n", 1),
			strings.Replace(secondContinues, `requestIds=["`, `requestIds=["break1","`, 1)),
	} {
		t.Run(name, func(t *testing.T) {
			if found := checkRuns(t, all); len(found) != 0 {
				t.Fatal(found)
			}
		})
	}
}

// manyIDs are more than a chain remembers.
var manyIDs = func() (ids []string) {
	for i := range 1500 {
		ids = append(ids, fmt.Sprint("m", i))
	}
	return ids
}()

// illegalWorkflows break one rule each between two runs of one workflow id.
var illegalWorkflows = []struct {
	rule, name, first, next string
	besides                 string // what cannot but be broken too
	change                  func([]*schemas.Record) []*schemas.Record
}{
	{rule: checker.RuleOneRun, name: "the first is open", first: begun1, next: secondRun},
	{rule: checker.RuleOneRun, name: "the first goes on", first: firstRun, next: secondRun, change: func(r []*schemas.Record) []*schemas.Record {
		return []*schemas.Record{r[0], r[2], r[1]}
	}},
	{rule: checker.RuleInherit, name: "inbox", first: firstRun, next: secondRun, change: func(r []*schemas.Record) []*schemas.Record {
		r[2].Inbox.Sequence = 10
		return r
	}},
	{rule: checker.RuleInherit, name: "signals", first: firstRun, next: secondRun, change: func(r []*schemas.Record) []*schemas.Record {
		r[2].Signals = schemas.Position{}
		return r
	}},
	{rule: checker.RuleFence, name: "falls between runs", first: firstRun, next: secondRun, change: func(r []*schemas.Record) []*schemas.Record {
		r[2].Fence = 4
		return r
	}},
	{rule: checker.RuleContinuation, name: "never begun", first: firstContinues, change: func(r []*schemas.Record) []*schemas.Record { return r[:2] }, next: secondRun},
	{rule: checker.RuleContinuation, name: "another run follows", first: firstContinues, next: secondRun, change: func(r []*schemas.Record) []*schemas.Record {
		r[2].Run = "r3"
		r[2].Events[0].Attributes.(*schemas.WorkflowStarted).Run = "r3"
		return r
	}},
	{rule: checker.RuleContinuation, name: "the successor does not know it", first: firstContinues, next: secondRun, besides: checker.RuleInherit},
	{rule: checker.RuleContinuation, name: "a chain begins in another one", first: firstRun, next: secondRun, change: successor(func(a *schemas.WorkflowStarted) { a.FirstExecutionRun = "r0" })},
	{rule: checker.RuleContinuation, name: "the chain is forgotten", first: firstContinues, next: secondContinues, change: successor(func(a *schemas.WorkflowStarted) { a.FirstExecutionRun = "" })},
	{rule: checker.RuleContinuation, name: "another chain", first: firstContinues, next: secondContinues, change: successor(func(a *schemas.WorkflowStarted) { a.FirstExecutionRun = "r0" })},
	{rule: checker.RuleContinuation, name: "another type", first: firstContinues, next: secondContinues, change: successor(func(a *schemas.WorkflowStarted) { a.WorkflowType = "U" })},
	{rule: checker.RuleContinuation, name: "another version", first: firstContinues, next: secondContinues, change: successor(func(a *schemas.WorkflowStarted) { a.WorkflowTypeVersion = "v1" })},
	{rule: checker.RuleContinuation, name: "another input", first: firstContinues, next: secondContinues, change: successor(func(a *schemas.WorkflowStarted) { a.Input = nil })},
	{rule: checker.RuleContinuation, name: "no parent", first: firstContinues, next: secondContinues, change: successor(func(a *schemas.WorkflowStarted) { a.ParentWorkflowExecution = nil })},
	{rule: checker.RuleContinuation, name: "another event of the parent", first: firstContinues, next: secondContinues, change: successor(func(a *schemas.WorkflowStarted) { a.ParentScheduledEventID++ })},
	{rule: checker.RuleContinuation, name: "deeper", first: firstContinues, next: secondContinues, change: successor(func(a *schemas.WorkflowStarted) { a.Depth++ })},
	{rule: checker.RuleContinuation, name: "another type, both say", first: firstContinues + " workflowType=U", next: secondContinues, change: successor(func(a *schemas.WorkflowStarted) { a.WorkflowType = "U" })},
	{rule: checker.RuleInherit, name: "a signal is forgotten", first: firstContinues, next: secondContinues, change: successor(func(a *schemas.WorkflowStarted) { a.SignalIDs = nil })},
	{rule: checker.RuleInherit, name: "a signal is invented", first: firstContinues, next: secondContinues, change: successor(func(a *schemas.WorkflowStarted) { a.SignalIDs = []string{"sig0", "sig1"} })},
	{rule: checker.RuleInherit, name: "a lock is forgotten", first: lockedContinues, next: secondLocked, change: successor(func(a *schemas.WorkflowStarted) { a.Locks = nil })},
	{rule: checker.RuleInherit, name: "a lock has another fence", first: lockedContinues, next: secondLocked, change: successor(func(a *schemas.WorkflowStarted) { a.Locks[0].Fence++ })},
	{rule: checker.RuleInherit, name: "a lock is invented", first: lockedContinues, next: secondLocked, change: successor(func(a *schemas.WorkflowStarted) { a.Locks = append(a.Locks, schemas.HeldLock{Lock: "M", Fence: 9}) })},
	{rule: checker.RuleInherit, name: "a request is forgotten", first: firstContinues, next: secondContinues, change: successor(func(a *schemas.WorkflowStarted) { a.RequestIDs = nil })},
	{rule: checker.RuleOnce, name: "a request is carried out again by the successor", first: firstContinues, next: secondContinues + "\nWorkflowCancelRequested requestId=cancel1"},
	{
		rule: checker.RuleOnce, name: "a lock is broken again by the same request", first: strings.Replace(firstContinues, "---\n", "---\nLockBroken L requestId=break1\n", 1),
		next: strings.Replace(secondContinues, `requestIds=["`, `requestIds=["break1","`, 1) + "\nLockBroken L requestId=break1",
	},
	{rule: checker.RuleContinuation, name: "the first did not continue", first: firstRun, next: secondContinues},
	{rule: checker.RuleOnce, name: "one start request began two runs", first: firstRun, next: "WorkflowStarted run=r2 requestId=start1\nDeciderScheduled"},
	{rule: checker.RuleOnce, name: "a signal is received again by the successor", first: firstContinues, next: secondContinues + "\nSignal s requestId=sig1"},
	{rule: checker.RuleOnce, name: "a signal is received again by the successor of a run that is gone", first: firstContinues, next: secondContinues + "\nSignal s requestId=sig1", change: func(r []*schemas.Record) []*schemas.Record {
		return r[2:]
	}},
	{
		rule: checker.RuleOnce, name: "a signal is received again by the successor after 1,500 others", // E1
		first: strings.Replace(firstContinues, "requestId=sig1\n", "requestId=sig1\nSignal s requestId="+strings.Join(manyIDs, "\nSignal s requestId=")+"\n", 1),
		next:  secondContinues + "\nSignal s requestId=sig1", change: successor(func(a *schemas.WorkflowStarted) { a.SignalIDs = manyIDs[500:] }),
	},
	{rule: checker.RuleReplay, name: "of an open run", first: strings.Split(failedRun, "---")[0], next: replayRun, besides: checker.RuleOneRun},
	{rule: checker.RuleReplay, name: "of a success from its end", first: strings.Replace(failedRun, "WorkflowFailed reason=broken", "WorkflowSuccess", 1), next: replayRun},
	{rule: checker.RuleReplay, name: "of a run that is not kept", first: failedUnkept, next: replayRun},
	{rule: checker.RuleReplay, name: "of a run whose parent is not kept", first: strings.Replace(failedRun, "run=r1", `run=r1 parentRetention={"disk":"3","soft":"3","disabled":true}`, 1), next: replayRun},
	{rule: checker.RuleReplay, name: "of a run that is not kept from its start on", first: strings.Replace(failedRun, "run=r1", `run=r1 retention={"disk":"3","soft":"3","disabled":true}`, 1), next: replayRun},
	{rule: checker.RuleReplay, name: "of itself", first: failedRun, next: strings.Replace(replayRun, `"r1"`, `"r2"`, 1)},
	{rule: checker.RuleReplay, name: "of no run", first: failedRun, next: strings.Replace(replayRun, `"r1"`, `""`, 1)},
	{rule: checker.RuleReplay, name: "from nowhere", first: failedRun, next: strings.Replace(replayRun, `"end"`, `""`, 1)},
	{rule: checker.RuleReplay, name: "of another type", first: failedRun, next: strings.Replace(replayRun, "Type=T", "Type=U", 1)},
	{rule: checker.RuleReplay, name: "of another version", first: failedRun, next: strings.Replace(replayRun, "=v1", "=v2", 1)},
	{rule: checker.RuleReplay, name: "as a child", first: failedRun, next: strings.Replace(replayRun, "run=r2", `run=r2 parentWorkflowExecution={"workflowId":"p","run":"p1"}`, 1)},
	{rule: checker.RuleReplay, name: "as a link of a chain", first: failedRun, next: strings.Replace(replayRun, "run=r2", "run=r2 continuedExecutionRun=r1 firstExecutionRun=r1", 1), besides: checker.RuleContinuation},
	{rule: checker.RuleWake, name: "within a run", first: "WorkflowStarted run=r1\nDeciderScheduled\nDeciderStarted\nDeciderFailed\n---\nWorkflowTerminated", next: secondRun},
}

// successor changes how the second run begins.
func successor(change func(*schemas.WorkflowStarted)) func([]*schemas.Record) []*schemas.Record {
	return func(r []*schemas.Record) []*schemas.Record {
		change(r[2].Events[0].Attributes.(*schemas.WorkflowStarted))
		return r
	}
}

// A chain may go on for ever: of its signals only the latest thousand are handed on.
func TestLatestSignalsAreInherited(t *testing.T) {
	const most = 1000
	for _, n := range []int{0, 1, most - 1, most, most + 1, 2*most + 1} {
		all := runs(t, firstContinues, secondContinues)
		var ids []string
		for i := range n {
			ids = append(ids, fmt.Sprint("sig.", i))
		}
		all[0].Events[0].Attributes.(*schemas.WorkflowStarted).SignalIDs = ids[:max(0, n-1)]
		all[1].Events[0].Attributes.(*schemas.Signal).RequestID = ""
		if n > 0 {
			all[1].Events[0].Attributes.(*schemas.Signal).RequestID = ids[n-1]
		}
		next := all[2].Events[0].Attributes.(*schemas.WorkflowStarted)
		next.SignalIDs = ids[max(0, n-most):]
		if found := checkRuns(t, all); len(found) != 0 {
			t.Fatalf("%d signals: got %v", n, found)
		}
		if n > 0 {
			next.SignalIDs = next.SignalIDs[1:]
			all[0].Previous, all[1].Previous = nil, nil
			checkRules(t, checkRuns(t, all), checker.RuleInherit, "", "")
		}
	}
}

// Where the ids are longer than a record may be, the latest that fit are handed on, and no others.
func TestLongIDsAreInheritedInPart(t *testing.T) {
	var ids []string
	for i := range 600 {
		ids = append(ids, fmt.Sprint(i, strings.Repeat("x", 200)))
	}
	for _, tt := range []struct {
		name       string
		known, has []string
		found      string
	}{
		{"all", ids, ids, ""},
		{"the latest", ids, ids[300:], ""},
		{"others", ids, ids[:300], checker.RuleInherit},
		{"fewer than fit", ids[400:], ids[500:], checker.RuleInherit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := runs(t, firstContinues, secondContinues)
			all[0].Events[0].Attributes.(*schemas.WorkflowStarted).SignalIDs = tt.known
			all[1].Events[0].Attributes.(*schemas.Signal).RequestID = ""
			all[2].Events[0].Attributes.(*schemas.WorkflowStarted).SignalIDs = tt.has
			if found := checkRuns(t, all); tt.found == "" && len(found) != 0 {
				t.Fatalf("got %.200v", found)
			} else if tt.found != "" {
				checkRules(t, found, tt.found, "", "")
			}
		})
	}
}

const begun1 = "WorkflowStarted run=r1\nDeciderScheduled"

func TestIllegalWorkflows(t *testing.T) {
	for _, tt := range illegalWorkflows {
		t.Run(tt.rule+"/"+tt.name, func(t *testing.T) {
			all := runs(t, tt.first, tt.next)
			if tt.change != nil {
				all = tt.change(all)
			}
			checkRules(t, checkRuns(t, all), tt.rule, tt.besides, showRecords(all))
		})
	}
}
