package workflow_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// answer is what we say to a mistake, to a complaint about another engine, or to what its tests play:
// a test, or why there is none.
type answer struct {
	about string
	tests string // such as "decider/workflow.TestSaga", separated by spaces
	none  string // "later: …", or why it does not apply
}

// misuse is what code of workflows must not do, and what finds it: the compiler, the vet tool, or the
// worker.
var misuse = []answer{
	{
		"compiler: an activity called directly, the context for net/http, wrong types, the wrong signal",
		"decider/workflow.TestMisuseDoesNotCompile contract.TestMisuseDoesNotCompile", "",
	},
	{"nobody need: the context of another coroutine", "decider/workflow.TestComplaints", ""},
	{"vet tool: go, channels, select, sync", "vet.TestAnalyzer", ""},
	{"worker: go, channels, select, sync", "decider/workflow.TestMistakes decider/workflow/internal/coroutine.TestForeignGoroutine " +
		"decider/workflow/internal/coroutine.TestStuck", ""},
	{"vet tool: the clock, chance, environment, files, network, context.Background", "vet.TestAnalyzer", ""},
	{"vet tool: a range over a map around calls or appends", "vet.TestAnalyzer", ""},
	{"replays of drovertest: what does something else each time", "drovertest.TestFailuresEnd", ""},
	{"vet tool: a result that is not used, recover, writes to globals, LockOSThread", "vet.TestAnalyzer", ""},
	{"worker: a result that is not used", "decider/workflow.TestResultIsIgnored", ""},
	{"worker: recover and LockOSThread", "decider/workflow/internal/coroutine.TestNoAPIDuringAPanic " +
		"decider/workflow/internal/coroutine.TestLockedThreads", ""},
	{"vet tool: a condition that asks for something", "vet.TestAnalyzer", ""},
	{"worker: a condition or a side effect that asks for something", "decider/workflow.TestMistakes", ""},
	{"vet tool and worker: a query or a validator that asks for something", "", "later: queries, updates"},
}

// complaints are those that users of other engines have written of. Numbers stand in the tests.
var complaints = []answer{
	{"sdk-go#864 #1271 #1693 #1837 features#559: errors of non-determinism say nothing", "decider/workflow.TestChangedWhileARunIsOpen", ""},
	{"sdk-go#1838 #876 #978 #983: a mismatch unseen, or a wrong answer sent", "decider/workflow/internal/machine.TestCodeThatDiffers", ""},
	{"sdk-go#988 #1670: the replayer stumbles over failed decisions and ends in mid-decision", "decider/workflow/internal/turns.TestTurns", ""},
	{"sdk-go#2595: histories share a cache in the replayer", "drovertest.TestReplayAgrees", ""},
	{"sdk-go#990: the replayer does not compare the close", "decider/workflow/internal/match.TestAgreement", ""},
	{"sdk-go#329 #435 #773 #2046 #2418: the deadlock detector fires on load", "decider/workflow/internal/coroutine.TestSlowIsNotStuck", ""},
	{"sdk-go#1133 temporal#4468: workflow.Go forgotten, Select never called", "vet.TestAnalyzer", ""},
	{"cadence#427: the wrong context for a blocking call", "decider/workflow.TestComplaints", ""},
	{"sdk-go#1285 #1932: untyped", "decider/workflow.TestMisuseDoesNotCompile", ""},
	{"sdk-go#1016: versions in loops, attributes that grow", "decider/workflow/internal/machine.TestChangedFrom", ""},
	{"sdk-go#301 #533 #1048 docs#781: signals lost at continue-as-new", "decider/workflow.TestSignalsGoOnToTheNextRun", ""},
	{"sdk-go#1624: a signal lost by the default of a selector", "decider/workflow.TestComplaints", ""},
	{"docs#3177: a signal before its handler", "decider/workflow.TestSignals", ""},
	{"ts#1277: an update before its handler", "", "later: updates"},
	{"sdk-go#1499 #1533: update handlers dangle at the end", "", "later: updates"},
	{"sdk-go#743 #1099 #1209 #1235 cadence#1048: deferred functions act when a run leaves the memory", "decider/workflow.TestComplaints", ""},
	{"sdk-go#520: coroutines leak", "decider/workflow/internal/coroutine.TestEvict", ""},
	{"sdk-go#716: coroutines of runs that were terminated leak", "decider/workflow.TestComplaints", ""},
	{"sdk-go#2582: coroutines outlive their worker", "decider.TestDeciderIsToldOfTheStop", ""},
	{"sdk-go#1049: code runs on after main has returned", "decider/workflow.TestComplaints", ""},
	{"cadence#402: cleanup after a cancellation fails", "decider/workflow.TestHowRunsEnd", ""},
	{"sdk-go#378 #1176: a cancellation meets an expired timer", "decider/workflow/internal/machine.TestCancelMeetsAnExpiredTimer", ""},
	{"sdk-go#1527 features#10: a cancel error of the activity's own", "decider/workflow.TestCancellationOfItsOwn", ""},
	{"sdk-go#403: errors.Is does not cross processes", "decider/workflow.TestHowRunsEnd", ""},
	{"sdk-go#1961 #108: the test environment behaves otherwise", "drovertest.TestRestart", ""},
	{"temporal#5439 sdk-go#1716: large histories when workers restart", "decider.TestLongHistoryIsReadInPagesAndOnce", ""},
	{"sdk-go#767 #814 #818: workflowcheck hangs, needs registration, is wrong", "vet.TestAnalyzer", ""},
	{
		"features#168 sdk-go#1706: progress of a local activity is lost near the timeout, heartbeats spin",
		"decider/workflow/internal/machine.TestStepIsCarriedOver decider/workflow.TestStepsAndCrashes", "",
	},
	{"dbos#89 #90 #109 #412: select, goroutines, step counters", "decider/workflow.TestComplaints", ""},
	{"restate#142: a suspension is logged as a panic", "decider/workflow.TestComplaints", ""},
	{"temporal#6329: debugging", "", "later: worker debug, stack"},
}

const (
	noQueries = "later: queries"
	noUpdates = "later: updates"
)

// behaviours are the tests of sdk-go, of integration and of its coroutines.
var behaviours = []answer{
	{"Basic", "decider/workflow.TestHowRunsEnd", ""},
	{"Panic*", "decider/workflow.TestPanicIsMended", ""},
	{"Deadlock*", "decider/workflow/internal/coroutine.TestStuck decider/workflow.TestMistakes", ""},
	{"ActivityRetry*", "decider/workflow.TestHowRunsEnd", ""},
	{"HBTimeout", "decider/workflow.TestBehaviours", ""},
	{"ContinueAsNew", "decider/workflow.TestHowRunsEnd", ""},
	{"ContinueAsNewCarryOver", "decider/workflow.TestSignalsGoOnToTheNextRun", ""},
	{"ContinueAsNewWithChildWF", "decider/workflow.TestBehaviours", ""},
	{"Cancellation", "decider/workflow.TestHowRunsEnd", ""},
	{"CascadingCancellation", "decider/workflow.TestBehaviours", ""},
	{"StackTraceQuery", "", noQueries},
	{"ConsistentQuery", "", noQueries},
	{"SignalWorkflow", "decider/workflow.TestSignals", ""},
	{"IDReuse*", "drovertest.TestStartTwice", ""},
	{"ChildWF", "decider/workflow.TestHowRunsEnd", ""},
	{"ParentClosePolicy*", "decider/workflow.TestChildrenOfARunThatEnds", ""},
	{"CancelActivity", "decider/workflow.TestBehaviours", ""},
	{"CancelTimer", "decider/workflow.TestHowRunsEnd", ""},
	{"CancelTimerAfterActivity", "decider/workflow.TestBehaviours", ""},
	{"CancelTimerViaDeferAfterWFTFailure", "decider/workflow.TestBehaviours", ""},
	{"CancelTimerConcurrentWithOtherCommand", "decider/workflow.TestBehaviours", ""},
	{"CancelChildWorkflow", "decider/workflow.TestHowRunsEnd", ""},
	{"CancelChildWorkflowUnusualTransitions", "decider/workflow.TestBehaviours", ""},
	{"CancelChildWorkflowAndParent", "decider/workflow.TestBehaviours", ""},
	{"CantStartChildAfterBeingCanceled", "decider/workflow.TestBehaviours", ""},
	{"ChildWorkflowDuplicate*_Regression", "decider/workflow.TestOtherWorkflows", ""},
	{"CancelActivityImmediately", "decider/workflow.TestBehaviours", ""},
	{"CancelMultipleCommandsOverMultipleTasks", "decider/workflow.TestBehaviours", ""},
	{"ParallelLocalActivities", "decider/workflow.TestSteps decider/workflow/internal/machine.TestStepsBesideEachOther", ""},
	{"LocalActivityHeartbeat", "decider/workflow/internal/machine.TestStepIsCarriedOver", ""},
	{"LocalActivityStaleCache", "decider/workflow.TestStepsAndCrashes decider/workflow/internal/machine.TestStepThatNobodyKeeps", ""},
	{"ParallelSideEffects", "decider/workflow.TestBehaviours", ""},
	{"LargeQueryResult", "", noQueries},
	{"MutatingQuery", "", noQueries},
	{"MutatingSideEffect", "decider/workflow.TestMistakes", ""},
	{"MutatingUpdateValidator", "", noUpdates},
	{"WaitForCancelWithDisconnectedContext", "decider/workflow.TestHowRunsEnd decider/workflow.TestSaga", ""},
	{"UpdateValidatorRejected, UpdateCancelled, UpdateWithMutex, UpdateHandlerRegisteredLate, UpdateOrdering, UpdateAlwaysHandled, " +
		"UpdateRejectedDuplicated, UpdateSpeculative, UpdateWithStart, UpdateSettingHandlerInHandler", "", noUpdates},
	{"VersionLoop", "decider/workflow/internal/machine.TestChangedFrom", ""},
	{"ContextPropagator", "", "later: headers"},
	{"ResetWorkflow", "", "later: a fork from an event"},
	{"QueryOnlyCoroutineUsage", "", noQueries},
	{"LargeHistoryReplay", "decider.TestLongHistoryIsReadInPagesAndOnce", ""},
	{"NonDeterminism*", "decider/workflow.TestChangedWhileARunIsOpen decider/workflow/internal/machine.TestCodeThatDiffers", ""},
	{"HistoryLength", "decider/workflow.TestContinueAsNewSuggested", ""},
	{"SelectorNoBlock", "decider/workflow.TestHowRunsEnd", ""},
	{"PartialHistoryReplayFuzzer", "decider/workflow/internal/machine.TestReplayIsLive", ""},
	{"UnhandledCommand", "decider/workflow.TestSignalsGoOnToTheNextRun", ""},
	{"PanicWithDeferredYield", "decider/workflow/internal/coroutine.TestNoAPIDuringAPanic", ""},
	{"StaleGoroutinesAreShutDown", "decider/workflow/internal/coroutine.TestEvict decider/workflow.TestComplaints", ""},

	{"DispatcherDeferClose", "decider/workflow/internal/coroutine.TestEvict", ""},
	{"DeadlockedDefer", "decider/workflow/internal/coroutine.TestEvictGivesUp", ""},
	{"BlockingSelect*", "decider/workflow.TestHowRunsEnd decider/workflow.TestChannels", ""},
	{"SelectBlockingDefault", "decider/workflow.TestComplaints", ""},
	{"SelectOnClosedChannel", "decider/workflow.TestBehaviours", ""},
	{"YieldDuringPanic", "decider/workflow/internal/coroutine.TestNoAPIDuringAPanic", ""},
	{"AwaitCancellation", "decider/workflow.TestBehaviours", ""},
	{"ContextCancelRace", "decider/workflow.TestBehaviours", ""},
}

// Each test that is named stands, and has the numbers that it answers.
func TestAnswersAreThere(t *testing.T) {
	number := regexp.MustCompile(`([a-z-]*)(#\d+)`)
	texts := map[string]map[string]string{} // by directory and test
	for _, a := range slices.Concat(misuse, complaints, behaviours) {
		if (a.tests == "") == (a.none == "") {
			t.Errorf("%s: want tests, or why there is none", a.about)
		}
		var all strings.Builder
		for test := range strings.FieldsSeq(a.tests) {
			dir, name, _ := strings.Cut(test, ".")
			if texts[dir] == nil {
				texts[dir] = testsOf(t, filepath.Join("../..", filepath.FromSlash(dir)))
			}
			text, ok := texts[dir][name]
			if !ok {
				t.Errorf("%s: there is no test %s", a.about, test)
			}
			all.WriteString(text)
		}
		for _, m := range number.FindAllStringSubmatch(a.about, -1) {
			if a.tests != "" && (!strings.Contains(all.String(), m[2]) || !strings.Contains(all.String(), m[1])) {
				t.Errorf("%s does not have the number %s", a.tests, m[0])
			}
		}
	}
}

// testsOf are the tests of a directory with their comments.
func testsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(fn.Name.Name, "Test") {
				continue
			}
			from := fn.Pos()
			if fn.Doc != nil {
				from = fn.Doc.Pos()
			}
			texts[fn.Name.Name] = string(source[fset.Position(from).Offset:fset.Position(fn.End()).Offset])
		}
	}
	return texts
}
