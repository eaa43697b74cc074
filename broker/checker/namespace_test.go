package checker_test

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/schemas"
)

// A scenario is what happens in a namespace, record by record: "@ id run" begins a record of that run, and what follows is
// in the short notation. A run that stands there for the first time begins: its WorkflowStarted and DeciderScheduled need
// not be written, but for "of id run event [depth]", which makes it the child of that event.

type scene struct {
	t       testing.TB
	all     []*schemas.Record
	scribes map[string]*scribe
}

// scenario reads the records in the order in which they were written.
func scenario(t testing.TB, text string) []*schemas.Record {
	t.Helper()
	s := &scene{t: t, scribes: make(map[string]*scribe)}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "@":
			s.record(words[1], words[2], words[3:])
		default:
			r := s.all[len(s.all)-1]
			w := s.scribes[r.Run]
			before := len(w.events)
			if err := w.add(line); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			r.Events = append(r.Events, w.events[before:]...)
		}
	}
	return s.all
}

func (s *scene) record(id, run string, how []string) {
	w := s.scribes[run]
	fresh := w == nil
	if fresh {
		w = newScribe()
		s.scribes[run] = w
	}
	r := &schemas.Record{
		WorkflowID: id, Run: run, First: int64(len(w.events) + 1), Fence: 5,
		Inbox: schemas.Position{Incarnation: 1, Sequence: uint64(10 + len(s.all))}, Signals: schemas.Position{Incarnation: 1, Sequence: 100},
	}
	s.all = append(s.all, r)
	if !fresh {
		return
	}
	started := "WorkflowStarted"
	if len(how) > 0 && how[0] == "of" {
		started += fmt.Sprintf(` depth=1 parentWorkflowExecution={"workflowId":%q,"run":%q} parentScheduledEventId=%s`, how[1], how[2], how[3])
		how = how[4:]
	}
	for _, line := range []string{strings.Join(append([]string{started}, how...), " "), "DeciderScheduled"} {
		if err := w.add(line); err != nil {
			s.t.Fatalf("%s: %v", line, err)
		}
	}
	a := w.events[0].Attributes.(*schemas.WorkflowStarted)
	a.WorkflowID, a.Run = id, run
	r.Events = append(r.Events, w.events...)
}

// chained gives records their hashes and encodes them; one is stored each minute.
func chained(t testing.TB, all []*schemas.Record) []checker.Stored {
	t.Helper()
	previous := make(map[string][]byte)
	stored := make([]checker.Stored, len(all))
	for i, r := range all {
		r.Previous = previous[r.Run]
		body, err := schemas.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(body)
		previous[r.Run] = sum[:]
		stored[i] = checker.Stored{Record: r, Body: body, At: 60 * second * schemas.Timestamp(1000+i)}
	}
	return stored
}

func checkNamespace(stored []checker.Stored, o checker.EndOptions) []checker.Violation {
	n := checker.NewNamespace()
	var found []checker.Violation
	for _, s := range stored {
		found = append(found, n.Record(s.Record, s.Body, s.At)...)
	}
	return append(found, n.End(o)...)
}

// byID orders records by workflow id, as streams are read one after the other; what belongs to one id keeps its order.
func byID(stored []checker.Stored, backward bool) []checker.Stored {
	out := slices.Clone(stored)
	slices.SortStableFunc(out, func(a, b checker.Stored) int {
		if backward {
			a, b = b, a
		}
		return strings.Compare(a.Record.WorkflowID, b.Record.WorkflowID)
	})
	return out
}

// parent asks for the child c by event 5, and c begins.
const parent = `
	@ p r executionStartToCloseTimeout=60
	DeciderStarted
	DeciderCompleted
	ChildScheduled c workflowType=C workflowTypeVersion=v input="in"
	@ c c-run of p r 5 executionStartToCloseTimeout=60 workflowType=C workflowTypeVersion=v input="in"
	@ p r
	ChildStarted c
`

const decides = "\nDeciderStarted\nDeciderCompleted\n"

const continues = `
	@ c c-run
	Signal s requestId=q1
	WorkflowCancelRequested requestId=q2` + decides + `
	WorkflowContinuedAsNew newExecutionRun=c-2 workflowType=C workflowTypeVersion=v input=2
	@ c c-2 of p r 5 continuedExecutionRun=c-run firstExecutionRun=c-run workflowType=C workflowTypeVersion=v input=2 signalIds=["q1"] requestIds=["q2"]
`

// signals sends a signal and a cancel request from s to t.
const signals = `
	@ t t-run
	@ s s-run
	DeciderStarted
	DeciderCompleted
	SignalExternalScheduled t signalName=hello input=7
	CancelExternalScheduled t run=t-run
	@ t t-run
	Signal hello input=7 externalWorkflowExecution={"workflowId":"s","run":"s-run"} externalScheduledEventId=5
	@ t t-run
	WorkflowCancelRequested externalWorkflowExecution={"workflowId":"s","run":"s-run"} externalScheduledEventId=6
`

// scenarios are legal and complete: nothing is left to do.
var scenarios = map[string]string{
	"nothing": "",
	"success": parent + `
		@ c c-run` + decides + `WorkflowSuccess result="done"
		@ p r
		ChildSuccess c result="done"
		DeciderScheduled`,
	"failure": parent + `
		@ c c-run` + decides + `WorkflowFailed reason=why details="how"
		@ p r
		ChildFailed c reason=why details="how"
		DeciderScheduled`,
	"timeout": parent + `
		@ c c-run
		+60s WorkflowTimedOut childPolicy=ABANDON
		@ p r
		ChildTimedOut c
		DeciderScheduled`,
	"canceled": parent + `
		@ c c-run
		WorkflowCancelRequested requestId=q` + decides + `WorkflowCanceled details="how"
		@ p r
		ChildCanceled c details="how"
		DeciderScheduled`,
	"terminated": parent + `
		@ c c-run
		WorkflowTerminated childPolicy=TERMINATE
		@ p r
		ChildTerminated c
		DeciderScheduled`,
	"open": parent,
	"a chain of a child": parent + continues + `
		@ c c-2` + decides + `WorkflowSuccess result="done"
		@ p r
		ChildSuccess c workflowExecution={"workflowId":"c","run":"c-2"} result="done"
		DeciderScheduled`,
	"a chain of the parent leaves its child": parent + `
		@ p r
		Signal s
		DeciderScheduled` + decides + `WorkflowContinuedAsNew newExecutionRun=r2
		@ p r2 continuedExecutionRun=r firstExecutionRun=r
		@ c c-run` + decides + `WorkflowSuccess`,
	"refused": `
		@ c other
		@ p r
		DeciderStarted
		DeciderCompleted
		ChildScheduled c
		@ p r
		ChildStartFailed c cause=WORKFLOW_ALREADY_RUNNING
		DeciderScheduled`,
	"refused at once": `
		@ p r
		DeciderStarted
		DeciderCompleted
		ChildStartFailed c scheduledEventId=0 deciderCompletedEventId=4
		SignalExternalFailed t scheduledEventId=0 deciderCompletedEventId=4
		CancelExternalFailed t scheduledEventId=0 deciderCompletedEventId=4
		DeciderScheduled`,
	"the child's workflow id is used again": parent + `
		@ c c-run` + decides + `WorkflowSuccess
		@ p r
		ChildSuccess c
		DeciderScheduled
		@ c another
		@ p r
		Signal s` + decides + `ChildScheduled c run=third
		@ c another` + decides + `WorkflowSuccess
		@ c third of p r 12`,
	"policy terminate": parent + `
		@ p r
		WorkflowTerminated childPolicy=TERMINATE
		@ c c-run
		WorkflowTerminated cause=CHILD_POLICY_APPLIED childPolicy=TERMINATE`,
	"policy terminate, the child was faster": parent + `
		@ p r
		WorkflowTerminated childPolicy=TERMINATE
		@ c c-run` + decides + `WorkflowSuccess`,
	"policy request cancel": parent + `
		@ p r
		+60s WorkflowTimedOut childPolicy=REQUEST_CANCEL
		@ c c-run
		WorkflowCancelRequested cause=CHILD_POLICY_APPLIED externalWorkflowExecution={"workflowId":"p","run":"r"}`,
	"policy request cancel, and it gives in": parent + `
		@ p r
		WorkflowTerminated childPolicy=REQUEST_CANCEL
		@ c c-run
		WorkflowCancelRequested cause=CHILD_POLICY_APPLIED` + decides + `WorkflowCanceled`,
	"policy request cancel, asked before": parent + `
		@ c c-run
		WorkflowCancelRequested requestId=q
		@ p r
		WorkflowTerminated childPolicy=REQUEST_CANCEL`,
	"policy request cancel, and it goes on": parent + `
		@ p r
		WorkflowTerminated childPolicy=REQUEST_CANCEL
		@ c c-run
		WorkflowCancelRequested cause=CHILD_POLICY_APPLIED` + continues,
	"policy request cancel, asked before, and it went on": parent + continues + `
		@ p r
		WorkflowTerminated childPolicy=REQUEST_CANCEL`,
	"policy abandon": parent + `
		@ p r
		WorkflowTerminated childPolicy=ABANDON`,
	"the parent succeeds": parent + `
		@ p r
		Signal s
		DeciderScheduled` + decides + `WorkflowSuccess
		@ c c-run` + decides + `WorkflowSuccess`,
	"signal and cancel": signals + `
		@ s s-run
		ExternalSignaled t
		ExternalCancelRequested t`,
	"answered twice and late": signals + `
		@ t t-run` + decides + `WorkflowCanceled
		@ s s-run
		ExternalSignaled t
		@ s s-run
		ExternalCancelRequested t`,
	"answered by a later run of the chain": signals + `
		@ t t-run` + decides + `WorkflowContinuedAsNew newExecutionRun=t-2
		@ t t-2 continuedExecutionRun=t-run firstExecutionRun=t-run signalIds=["s-run.5","s-run.6"]
		@ s s-run
		ExternalSignaled t workflowExecution={"workflowId":"t","run":"t-2"}
		ExternalCancelRequested t`,
	// R3: origin and copy count as one.
	"copied into the next run, since nobody had read it": `
		@ s s-run` + decides + `SignalExternalScheduled t signalName=hello input=5
		@ t t-run
		DeciderStarted
		@ t t-run
		Signal hello input=5 externalWorkflowExecution={"workflowId":"s","run":"s-run"} externalScheduledEventId=5
		@ t t-run
		DeciderCompleted
		WorkflowContinuedAsNew newExecutionRun=t-2 unreadSignals=1
		@ t t-2 continuedExecutionRun=t-run firstExecutionRun=t-run signalIds=["s-run.5"] unreadSignals=1
		Signal hello input=5 externalWorkflowExecution={"workflowId":"s","run":"s-run"} externalScheduledEventId=5 originRun=t-run originEventId=4
		@ s s-run
		ExternalSignaled t workflowExecution={"workflowId":"t","run":"t-run"}`,
	"sent to a chain by its first run": `
		@ t t-run` + decides + `WorkflowContinuedAsNew newExecutionRun=t-2
		@ t t-2 continuedExecutionRun=t-run firstExecutionRun=t-run
		@ s s-run` + decides + `SignalExternalScheduled t run=t-run signalName=hello
		@ t t-2
		Signal hello externalWorkflowExecution={"workflowId":"s","run":"s-run"} externalScheduledEventId=5
		@ s s-run
		ExternalSignaled t`,
	"asked to cancel before": `
		@ t t-run
		WorkflowCancelRequested requestId=q
		@ s s-run` + decides + `CancelExternalScheduled t
		@ s s-run
		ExternalCancelRequested t`,
	"to itself": `
		@ s s-run` + decides + `SignalExternalScheduled s signalName=hello
		@ s s-run
		Signal hello externalWorkflowExecution={"workflowId":"s","run":"s-run"} externalScheduledEventId=5
		DeciderScheduled
		@ s s-run
		ExternalSignaled s`,
	"reached nobody": `
		@ s s-run` + decides + `SignalExternalScheduled t signalName=hello
		CancelExternalScheduled t
		@ s s-run
		SignalExternalFailed t
		CancelExternalFailed t
		DeciderScheduled`,
	"failed, and repeated to one that began meanwhile": `
		@ s s-run` + decides + `SignalExternalScheduled t signalName=hello
		@ s s-run
		SignalExternalFailed t
		DeciderScheduled
		@ t t-run
		Signal hello externalWorkflowExecution={"workflowId":"s","run":"s-run"} externalScheduledEventId=5`,
	"the source closes before its answer": signals + `
		@ s s-run
		WorkflowTerminated childPolicy=TERMINATE`,
}

// settled adds the DeciderScheduled that a scenario leaves out after what wakes.
func settled(text string) string {
	type run struct{ pending, want bool }
	runs := map[string]*run{}
	now := &run{}
	var b strings.Builder
	flush := func() {
		if now.want {
			b.WriteString("DeciderScheduled\n")
			now.pending, now.want = true, false
		}
	}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if words[0] == "@" {
			flush()
			if runs[words[2]] == nil {
				runs[words[2]] = &run{pending: true}
			}
			now = runs[words[2]]
		}
		if strings.HasPrefix(words[0], "+") {
			words = words[1:]
		}
		switch typ := schemas.EventType(words[0]); {
		case typ == schemas.EventDeciderScheduled:
			now.pending, now.want = true, false
		case typ == schemas.EventDeciderStarted:
			flush()
			now.pending = false
		case typ.Closes():
			now.want = false
		case typ.Wakes():
			now.want = !now.pending
		}
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	flush()
	return b.String()
}

// What is legal is legal in whatever order the streams are read, whether or not all is at rest and nothing is removed.
func TestNamespacesPass(t *testing.T) {
	for name, text := range scenarios {
		t.Run(name, func(t *testing.T) {
			all := scenario(t, settled(text))
			stored := chained(t, all)
			for _, order := range [][]checker.Stored{stored, byID(stored, false), byID(stored, true)} {
				for _, o := range []checker.EndOptions{{}, {Quiet: true}, {Removed: true}, {Quiet: true, Removed: true}} {
					if found := checkNamespace(order, o); len(found) != 0 {
						t.Fatalf("%+v: got %v\n%s", o, found, showRecords(all))
					}
				}
			}
		})
	}
}

// A living system is read stream by stream, each at another moment: what is read of one may be the effect of what is not
// read of another. Nothing is missed that has not had its cause.
func TestLivingNamespacesPass(t *testing.T) {
	for name, text := range scenarios {
		stored := chained(t, scenario(t, settled(text)))
		ids := map[string]bool{}
		for _, s := range stored {
			ids[s.Record.WorkflowID] = true
		}
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			n := checker.NewNamespace()
			order := rapid.Permutation(slices.Sorted(maps.Keys(ids))).Draw(t, "order")
			read := map[string]int{}
			var found []checker.Violation
			until := func(id string, moment int) {
				for _, s := range stored[min(read[id], moment):moment] {
					if s.Record.WorkflowID == id {
						found = append(found, n.Record(s.Record, s.Body, s.At)...)
					}
				}
				read[id] = max(read[id], moment)
			}
			moment := 0
			for _, id := range order {
				moment = rapid.IntRange(moment, len(stored)).Draw(t, "moment")
				until(id, moment)
			}
			n.Seal()
			for _, id := range order {
				moment = rapid.IntRange(moment, len(stored)).Draw(t, "again")
				until(id, moment)
			}
			if found = append(found, n.End(checker.EndOptions{})...); len(found) != 0 {
				t.Fatalf("got %v", found)
			}
		}))
	}
}
