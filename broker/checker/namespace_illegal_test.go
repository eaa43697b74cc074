package checker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/checker"
)

// illegalNamespaces break one rule each between workflows. Where a rule needs that all is at rest, without it they pass.
var illegalNamespaces = []struct {
	rule, name, text string
	quiet            bool
	where            string // workflow id and event of the violation; empty if that depends on what is read first
}{
	{rule: checker.RuleParent, name: "nobody asked", where: "c 1", text: "@ p r\n@ c c-run of p r 5"},
	{rule: checker.RuleParent, name: "the parent does not exist", where: "c 1", text: "@ c c-run of p r 5"},
	{rule: checker.RuleParent, name: "asked for another run", where: "c 1", text: asksChild + "@ c c-2 of p r 5\n@ p r\nChildStarted c"},
	{rule: checker.RuleParent, name: "another type", where: "c 1", text: strings.Replace(parent, "executionStartToCloseTimeout=60 workflowType=C", "executionStartToCloseTimeout=60 workflowType=D", 1)},
	{rule: checker.RuleParent, name: "another version", where: "c 1", text: strings.Replace(parent, "workflowType=C workflowTypeVersion=v input=\"in\"\n\t@ p r", "workflowType=C workflowTypeVersion=w input=\"in\"\n\t@ p r", 1)},
	{rule: checker.RuleParent, name: "another input", where: "c 1", text: strings.Replace(parent, `workflowTypeVersion=v input="in"`+"\n\t@ p r", `workflowTypeVersion=v input="on"`+"\n\t@ p r", 1)},
	{rule: checker.RuleParent, name: "too deep", where: "c 1", text: strings.Replace(parent, "of p r 5", "of p r 5 depth=2", 1)},
	{rule: checker.RuleParent, name: "two children of one event", where: "c 1", text: parent + "@ c c-run\nWorkflowTerminated\n@ c c-2 of p r 5 workflowType=C workflowTypeVersion=v input=\"in\"\n@ p r\nChildTerminated c"},
	{rule: checker.RuleParent, name: "another child after the report", where: "c 1", text: parent + "@ c c-run\nWorkflowTerminated\n@ p r\nChildTerminated c\n@ c c-2 of p r 5"},
	{rule: checker.RuleParent, name: "started, but is not there", where: "p 6", text: asksChild + "@ p r\nChildStarted c"},
	{rule: checker.RuleParent, name: "closed, but is not there", where: "p 6", text: asksChild + "@ p r\nChildStarted c\nChildSuccess c"},
	{rule: checker.RuleParent, name: "started, but is the child of nobody", where: "p 6", text: asksChild + "@ p r\nChildStarted c\n@ c c-run"},
	{rule: checker.RuleParent, name: "refused, but has begun", text: asksChild + "@ c c-run of p r 5\n@ p r\nChildStartFailed c"},
	{rule: checker.RuleParent, name: "begins after its refusal", text: asksChild + "@ p r\nChildStartFailed c\n@ c c-run of p r 5"},
	{rule: checker.RuleParent, name: "succeeded, but is open", where: "p 7", text: parent + "@ p r\nChildSuccess c"},
	{rule: checker.RuleParent, name: "succeeded, but failed", where: "p 7", text: parent + "@ c c-run" + decides + "WorkflowFailed\n@ p r\nChildSuccess c"},
	{rule: checker.RuleParent, name: "another result", where: "p 7", text: parent + "@ c c-run" + decides + "WorkflowSuccess result=1\n@ p r\nChildSuccess c result=2"},
	{rule: checker.RuleParent, name: "another reason", where: "p 7", text: parent + "@ c c-run" + decides + "WorkflowFailed reason=a\n@ p r\nChildFailed c reason=b"},
	{rule: checker.RuleParent, name: "reason and details are not mixed up", where: "p 7", text: parent + "@ c c-run" + decides + "WorkflowFailed reason=a\n@ p r\nChildFailed c details=a"},
	{rule: checker.RuleParent, name: "other details", where: "p 7", text: parent + "@ c c-run" + decides + "WorkflowCanceled details=1\n@ p r\nChildCanceled c details=2"},
	{rule: checker.RuleParent, name: "a run of the chain is no end", where: "p 7", text: parent + continues + "@ c c-2\nWorkflowTerminated\n@ p r\nChildTerminated c"},
	{rule: checker.RuleParent, name: "the chain goes on", where: "p 7", text: parent + continues + "@ p r\nChildSuccess c"},

	{rule: checker.RuleChildPolicy, name: "has no parent", where: "c 3", text: "@ c c-run\nWorkflowTerminated cause=CHILD_POLICY_APPLIED"},
	{rule: checker.RuleChildPolicy, name: "has no parent to cancel for", where: "c 3", text: "@ c c-run\nWorkflowCancelRequested cause=CHILD_POLICY_APPLIED"},
	{rule: checker.RuleChildPolicy, name: "the parent is open", where: "c 3", text: parent + "@ c c-run\nWorkflowTerminated cause=CHILD_POLICY_APPLIED"},
	{rule: checker.RuleChildPolicy, name: "the parent is open and cancels", where: "c 3", text: parent + "@ c c-run\nWorkflowCancelRequested cause=CHILD_POLICY_APPLIED"},
	{rule: checker.RuleChildPolicy, name: "the parent ended by itself", where: "c 3", text: parent + "@ p r\nSignal s" + decides + "WorkflowSuccess\n@ c c-run\nWorkflowTerminated cause=CHILD_POLICY_APPLIED"},
	{rule: checker.RuleChildPolicy, name: "another policy", where: "c 3", text: parent + "@ p r\nWorkflowTerminated childPolicy=REQUEST_CANCEL\n@ c c-run\nWorkflowTerminated cause=CHILD_POLICY_APPLIED"},
	{rule: checker.RuleChildPolicy, name: "abandoned", where: "c 3", text: parent + "@ p r\n+60s WorkflowTimedOut childPolicy=ABANDON\n@ c c-run\nWorkflowCancelRequested cause=CHILD_POLICY_APPLIED"},
	{rule: checker.RuleChildPolicy, name: "the parent has had the end", where: "c 3", text: parent + "@ c c-run\nWorkflowTerminated cause=CHILD_POLICY_APPLIED\n@ p r\nChildTerminated c\nWorkflowTerminated childPolicy=TERMINATE"},
	{rule: checker.RuleChildPolicy, name: "for another parent", where: "c 3", text: parent + "@ p r\nWorkflowTerminated childPolicy=REQUEST_CANCEL\n@ c c-run\nWorkflowCancelRequested cause=CHILD_POLICY_APPLIED externalWorkflowExecution={\"workflowId\":\"p\",\"run\":\"r0\"}"},
	{rule: checker.RuleChildPolicy, name: "for another event", where: "c 3", text: parent + "@ p r\nWorkflowTerminated childPolicy=REQUEST_CANCEL\n@ c c-run\nWorkflowCancelRequested cause=CHILD_POLICY_APPLIED externalWorkflowExecution={\"workflowId\":\"p\",\"run\":\"r\"} externalScheduledEventId=6"},
	{rule: checker.RuleChildPolicy, name: "a child stays open", where: "c 0", quiet: true, text: parent + "@ p r\nWorkflowTerminated childPolicy=TERMINATE"},
	{rule: checker.RuleChildPolicy, name: "a chain stays open", where: "c 0", quiet: true, text: parent + continues + "@ p r\nWorkflowTerminated childPolicy=TERMINATE"},
	{rule: checker.RuleChildPolicy, name: "a child is not asked to cancel", where: "c 0", quiet: true, text: parent + "@ p r\n+60s WorkflowTimedOut childPolicy=REQUEST_CANCEL"},

	{rule: checker.RuleLock, name: "two holders", where: "b 6", text: takes("a", 1, "") + takes("b", 2, "") + "@ a a-run\nLockReleased L fence=1 deciderCompletedEventId=0"},
	{rule: checker.RuleLock, name: "three holders of two places", where: "c 6", text: takes("a", 1, "limit=2") + takes("b", 2, "limit=2") + takes("c", 3, "limit=2")},
	{rule: checker.RuleLock, name: "one fence for two", text: takes("a", 1, "") + "@ a a-run\nLockReleased L fence=1 deciderCompletedEventId=0\n" + takes("b", 1, "")},
	{rule: checker.RuleLock, name: "the end of the run comes after", where: "b 6", text: takes("a", 1, "") + takes("b", 2, "") + "@ a a-run\nLockBroken L fence=1 cause=LEASE_EXPIRED"},

	{rule: checker.RuleDelivery, name: "nobody sent it", where: "t 3", text: "@ s s-run\n@ t t-run\nSignal hello " + fromS},
	{rule: checker.RuleDelivery, name: "the source is not there", where: "t 3", text: "@ t t-run\nSignal hello " + fromS},
	{rule: checker.RuleDelivery, name: "nobody asked to cancel", where: "t 3", text: "@ s s-run\n@ t t-run\nWorkflowCancelRequested " + fromS},
	{rule: checker.RuleDelivery, name: "another name", where: "t 3", text: sends + "@ t t-run\nSignal hullo " + fromS},
	{rule: checker.RuleDelivery, name: "another input", where: "t 3", text: sends + "@ t t-run\nSignal hello input=1 " + fromS},
	{rule: checker.RuleDelivery, name: "another target", where: "u 3", text: sends + "@ u u-run\nSignal hello " + fromS},
	{rule: checker.RuleDelivery, name: "another run", where: "t 3", text: strings.Replace(sends, "Scheduled t", "Scheduled t run=t-0", 1) + "@ t t-run\nSignal hello " + fromS},
	{rule: checker.RuleDelivery, name: "of another kind", where: "t 3", text: sends + "@ t t-run\nWorkflowCancelRequested " + fromS},
	{rule: checker.RuleDelivery, name: "twice in two runs", where: "t 3", text: sends + "@ t t-run\nSignal hello " + fromS + "\n@ t t-run\nWorkflowTerminated\n@ t t-2\nSignal hello " + fromS},
	{rule: checker.RuleDelivery, name: "again after the answer", where: "t 3", text: sends + "@ t t-run\nSignal hello " + fromS + "\n@ s s-run\nExternalSignaled t\n@ t t-run\nWorkflowTerminated\n@ t t-2\nSignal hello " + fromS},
	{rule: checker.RuleDelivery, name: "again after the end of the source", where: "t 3", text: sends + "@ t t-run\nSignal hello " + fromS + "\n@ s s-run\nWorkflowTerminated\n@ t t-run\nWorkflowTerminated\n@ t t-2\nSignal hello " + fromS},
	{rule: checker.RuleDelivery, name: "answered, but not there", where: "s 6", text: sends + "@ t t-run\n@ s s-run\nExternalSignaled t"},
	{rule: checker.RuleDelivery, name: "answered, but there is no target", where: "s 6", text: sends + "@ s s-run\nExternalSignaled t"},
	{rule: checker.RuleDelivery, name: "answered for an unknown run", where: "s 6", text: sends + "@ t t-run\nSignal hello " + fromS + "\n@ s s-run\nExternalSignaled t workflowExecution={\"workflowId\":\"t\",\"run\":\"t-9\"}"},
	{rule: checker.RuleDelivery, name: "answered for another chain", where: "s 6", text: sends + "@ t t-run\nSignal hello " + fromS + "\n@ t t-run\nWorkflowTerminated\n@ t t-2\n@ s s-run\nExternalSignaled t workflowExecution={\"workflowId\":\"t\",\"run\":\"t-2\"}"},
	{rule: checker.RuleDelivery, name: "answered, but never asked to cancel", where: "s 6", text: "@ t t-run\n@ s s-run" + decides + "CancelExternalScheduled t\n@ s s-run\nExternalCancelRequested t"},
	{rule: checker.RuleDelivery, name: "answered, but another chain was asked to cancel", where: "s 6", text: "@ t t-1\nWorkflowCancelRequested requestId=q\n@ t t-1\nWorkflowTerminated\n@ t t-run\n@ s s-run" + decides + "CancelExternalScheduled t\n@ s s-run\nExternalCancelRequested t"},

	{rule: checker.RuleUnfinished, name: "a child has not begun", where: "p 5", quiet: true, text: asksChild},
	{rule: checker.RuleUnfinished, name: "a child's end is not reported", where: "c 3", quiet: true, text: parent + "@ c c-run\nWorkflowTerminated"},
	{rule: checker.RuleUnfinished, name: "a signal has no answer", where: "s 5", quiet: true, text: sends},
	{rule: checker.RuleUnfinished, name: "a signal that has arrived has no answer", where: "s 5", quiet: true, text: sends + "@ t t-run\nSignal hello " + fromS},
	{rule: checker.RuleUnfinished, name: "a cancel request has no answer", where: "s 5", quiet: true, text: "@ s s-run" + decides + "CancelExternalScheduled t"},

	{rule: checker.RuleContinuation, name: "no successor for a while", where: "c 5", text: "@ c c-1" + decides + "WorkflowContinuedAsNew newExecutionRun=c-2\n@ a a-run\n@ b b-run"},
	{rule: checker.RuleContinuation, name: "no successor at rest", where: "c 5", quiet: true, text: "@ c c-1" + decides + "WorkflowContinuedAsNew newExecutionRun=c-2"},
	{rule: checker.RuleContinuation, name: "no predecessor", where: "c 1", text: "@ c c-2 continuedExecutionRun=c-1 firstExecutionRun=c-1"},
	{rule: checker.RuleReplay, name: "of a run that continued", where: "c 1", text: "@ c c-1" + decides + "WorkflowContinuedAsNew newExecutionRun=c-2\n@ c c-2 continuedExecutionRun=c-1 firstExecutionRun=c-1\nWorkflowTerminated\n@ c c-3 replays={\"run\":\"c-1\",\"from\":\"end\"}"},
	{rule: checker.RuleReplay, name: "of a run without a record", where: "c 1", text: "@ c c-2 replays={\"run\":\"c-1\",\"from\":\"end\"}"},
	{rule: checker.RuleReplay, name: "of a run of another workflow", where: "c 1", text: "@ b b-1\nWorkflowTerminated\n@ c c-2 replays={\"run\":\"b-1\",\"from\":\"end\"}"},
	{rule: checker.RuleDelivery, name: "answered by a run that was not asked to cancel", where: "s 6", text: "@ t t-run\nWorkflowCancelRequested requestId=q\n@ s s-run" + decides + "CancelExternalScheduled t run=t-9\n@ s s-run\nExternalCancelRequested t"},
	{rule: checker.RuleChild, name: "one child for two runs of a chain", where: "p 5", text: asksChild + "WorkflowContinuedAsNew newExecutionRun=r2\n@ p r2 continuedExecutionRun=r firstExecutionRun=r" + decides + "ChildScheduled c"},
	{rule: checker.RuleOneRun, name: "two open runs", where: "c 1", text: "@ c c-1\n@ c c-2"},
}

const (
	asksChild = "@ p r" + decides + "ChildScheduled c\n"
	sends     = "@ s s-run" + decides + "SignalExternalScheduled t signalName=hello\n"
	fromS     = `externalWorkflowExecution={"workflowId":"s","run":"s-run"} externalScheduledEventId=5`
)

func TestIllegalNamespaces(t *testing.T) {
	for _, tt := range illegalNamespaces {
		t.Run(tt.rule+"/"+tt.name, func(t *testing.T) {
			all := scenario(t, settled(tt.text))
			stored := chained(t, all)
			for i, order := range [][]checker.Stored{stored, byID(stored, false), byID(stored, true)} {
				if found := checkNamespace(order, checker.EndOptions{}); tt.quiet && len(found) != 0 {
					t.Fatalf("order %d, not at rest: got %v", i, found)
				}
				found := checkNamespace(order, checker.EndOptions{Quiet: tt.quiet})
				there := slices.ContainsFunc(found, func(v checker.Violation) bool { return fmt.Sprint(v.WorkflowID, " ", v.EventID) == tt.where })
				if got := rules(found); got != tt.rule || !there && tt.where != "" {
					t.Errorf("order %d: got %v, want %s at %s\n%s", i, found, tt.rule, tt.where, showRecords(all))
				}
			}
		})
	}
}

// What a run repeats may be gone by its retention; then nobody can tell, and the run is no worse for it.
func TestReplayOfWhatIsRemoved(t *testing.T) {
	all := chained(t, scenario(t, "@ c c-1\nWorkflowTerminated\n@ c c-2 replays={\"run\":\"c-1\",\"from\":\"end\"}\nWorkflowTerminated\n@ c c-3 replays={\"run\":\"c-1\",\"from\":\"end\"}"))
	for n, want := range []string{"passes", checker.RuleReplay, checker.RuleReplay} {
		if got := rules(checkNamespace(all[n:], checker.EndOptions{})); got != want {
			t.Errorf("without %d records: got %q, want %q", n, got, want)
		}
		if found := checkNamespace(all[n:], checker.EndOptions{Removed: true}); len(found) != 0 {
			t.Errorf("without %d records, which retention has removed: got %v", n, found)
		}
	}
}

// Histories are removed once their runs are closed: of one that is there and open the end cannot have been read.
func TestEndOfAnOpenChildBesideWhatIsRemoved(t *testing.T) {
	found := checkNamespace(chained(t, scenario(t, settled(parent+"@ p r\nChildSuccess c"))), checker.EndOptions{Removed: true})
	if got := rules(found); got != checker.RuleParent {
		t.Fatalf("got %v, want %s", found, checker.RuleParent)
	}
}

// takes is a run that gets lock L with a fence.
func takes(id string, fence int, request string) string {
	return fmt.Sprintf("@ %[1]s %[1]s-run\nDeciderStarted\nDeciderCompleted\nLockRequested L %[3]s\nLockAcquired L fence=%[2]d\nDeciderScheduled\n", id, fence, request)
}
