package broker_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

// why asks and hides what differs from run to run: times and spans.
func (f *fleet) why(id string) string {
	f.t.Helper()
	because, _ := f.api("why", fmt.Sprintf(`{"workflowId":%q}`, id))["because"].(string)
	because = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`).ReplaceAllString(because, "T")
	return regexp.MustCompile(`\b(\d+h)?(\d+m)?\d+(\.\d+)?m?s\b`).ReplaceAllString(because, "D")
}

// Every situation that a run can be in has its sentence, with the names and times that matter.
func TestWhy(t *testing.T) {
	timer := func(id string, seconds int) string {
		return fmt.Sprintf(`{"type":"ScheduleTimer","attributes":{"timerId":%q,"startToFireTimeout":%d}}`, id, seconds)
	}
	child := `{"type":"StartChild","attributes":{"workflowId":"kid","workflowType":"idle"}}`
	begun := func(f *fleet) {
		k := f.pull()
		k.report("started", `,"identity":"worker 1"`)
		f.await("o", schemas.EventActivityStarted)
	}
	for _, tc := range []struct {
		name, first string // what the decider decides first; "" for no decider, "-" for one that never answers
		do          func(*fleet)
		want        string
	}{
		{"nobody listens", "", nil, `no decider for type "order" is listening (decision wanted since T (D)); start one in namespace "default"`},
		{"deciding", "-", nil, `a decider of type "order" is deciding since T (D)`},
		{"backing off", `[{"type":"Nonsense"}]`, func(f *fleet) { time.Sleep(7 * time.Second) }, `its decider of type "order" failed or timed out 7 times in a row and is asked again at T; it failed with: decision 1: "Nonsense" is no decision that this version knows`},
		{"asked again", "-", func(*fleet) { time.Sleep(11 * time.Second) }, `a decider of type "order" is deciding since T (D); it failed or timed out 1 time before`},
		{
			"parked", `[{"type":"Nonsense"}]`, func(f *fleet) { f.await("o", schemas.EventWorkflowPaused) },
			`it is parked: the decider failed 10 times in a row: decision 1: "Nonsense" is no decision that this version knows; mend the decider of type "order", then: drover resume o`,
		},
		{"paused", `[]`, func(f *fleet) { f.api("pause", `{"workflowId":"o","reason":"lunch"}`) }, `it is paused (lunch); go on with: drover resume o`},
		{"a signal", `[]`, nil, `its decider left nothing open: it waits for a signal, or times out at T`},
		{"a timer", "[" + timer("tea", 300) + "]", nil, `timer "tea" expires at T`},
		{"timers", "[" + timer("tea", 300) + "," + timer("egg", 240) + "," + timer("oven", 900) + "]", nil, `timer "egg" expires at T; 2 more timers are open`},
		{
			"no worker", "[" + scheduleActivity("a", "") + "]", nil,
			`no worker has taken activity "a" of type "work" from list "main" since T (D); nobody works on that list, where 1 task waits: start a worker`,
		},
		{
			"busy workers", "[" + scheduleActivity("a", "") + "," + scheduleActivity("b", "") + "]", func(f *fleet) { f.pull() },
			`no worker has taken activity "a" of type "work" from list "main" since T (D); 1 more activity is open; its workers are busy with 1 task, 1 task waits: start more of them`,
		},
		{
			"a worker that says nothing", "[" + scheduleActivity("a", "") + "]", func(f *fleet) { f.pull() },
			`no worker has taken activity "a" of type "work" from list "main" since T (D); its workers have 1 task in hand, and none waits: if it is this one, its worker has not said that it began: see its log, and drover dead`,
		},
		{"at work", "[" + scheduleActivity("a", "") + "]", begun, `activity "a" of type "work" runs on worker 1 since T (D), attempt 1, times out at T`},
		{
			"beating", "[" + scheduleActivity("a", `,"heartbeatTimeout":30`) + "]", begun,
			`activity "a" of type "work" runs on worker 1 since T (D), attempt 1, last heard of D ago, times out at T`,
		},
		{"a report that nobody can read", "[" + scheduleActivity("a", "") + "]", func(f *fleet) {
			k := f.pull()
			k.report("started", `,"identity":"worker 1"`)
			f.await("o", schemas.EventActivityStarted)
			k.report("success", `,"result":1,"reason":2`)
			for len(f.dead()) == 0 {
				time.Sleep(time.Millisecond)
			}
		}, `activity "a" of type "work" runs on worker 1 since T (D), attempt 1, times out at T; a worker's report of T is a dead letter (undecodable: schemas: the body is malformed: reason: want a text, got a number), see: drover dead`},
		{
			"asked to cancel", "[" + scheduleActivity("a", "") + `,{"type":"RequestCancelActivity","attributes":{"activityId":"a"}}]`, nil,
			`its decider left nothing open: it waits for a signal, or times out at T`,
		},
		{"a retry", "[" + scheduleActivity("a", `,"retry":{"initialInterval":120,"maximumAttempts":3}`) + "]", func(f *fleet) {
			k := f.pull()
			k.report("failed", `,"reason":"no"`)
			f.await("o", schemas.EventActivityRetryScheduled)
		}, `activity "a" of type "work" begins its attempt 2 at T; attempt 1 of activity "a" failed with: no`},
		{"a failure that is not the last word", "[" + scheduleActivity("a", `,"retry":{"initialInterval":120,"maximumAttempts":3}`) + "]", func(f *fleet) {
			k := f.pull()
			k.report("failed", `,"reason":"no"`)
			f.await("o", schemas.EventActivityRetryScheduled)
			f.api("signal", `{"workflowId":"o","name":"hello"}`)
			f.await("o", schemas.EventSignal)
			time.Sleep(time.Second)
		}, `activity "a" of type "work" begins its attempt 2 at T`},
		{"a child", "[" + child + "]", nil, `child workflow "kid" of type "idle" runs since T (D)`},
		{
			"several", "[" + timer("tea", 300) + "," + child + "," + scheduleActivity("a", "") + "," + scheduleActivity("b", "") + "]", begun,
			`activity "a" of type "work" runs on worker 1 since T (D), attempt 1, times out at T; timer "tea" expires at T; 1 more activity is open; 1 more child is open`,
		},
		{"closed", complete, nil, `it is closed: completed at T`},
		{"failed", `[{"type":"FailWorkflow","attributes":{"reason":"no money"}}]`, nil, `it is closed: failed at T, reason: no money`},
		{"a flow that failed", `[{"type":"FailWorkflow","attributes":{"reason":"child","details":{"message":"m","cause":{"message":"there is no x","type":"expression","step":"0.steps.1"}}}}]`, nil, `it is closed: failed at T, reason: child, cause: expression: there is no x (at step 0.steps.1)`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				switch tc.first {
				case "":
				case "-":
					f.decider("order", func(*decisionTask) string { return "" })
				default:
					f.decider("order", when("WorkflowStarted", tc.first))
				}
				f.start(startO)
				time.Sleep(3 * time.Second)
				if tc.do != nil {
					tc.do(f)
				}
				if got := f.why("o"); got != tc.want {
					t.Fatalf("got  %s\nwant %s", got, tc.want)
				}
			})
		})
	}
}

// A worker that waits is told of, and what it does not take for another reason.
func TestWhyCountsWaitingWorkers(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", one(""))
		f.start(startO)
		f.pull() // a worker that holds it and says nothing
		var waiting sync.WaitGroup
		defer waiting.Wait()
		waiting.Go(func() { f.tryPull(5 * time.Second) })
		time.Sleep(time.Second)
		if got := f.why("o"); !strings.Contains(got, "; 1 worker waits there for tasks") {
			t.Fatalf("got %s", got)
		}
		until := time.Now().Add(time.Hour)
		if _, err := f.js.PauseConsumer(t.Context(), ns.StreamTasks("main"), topology.Consumer, until); err != nil {
			t.Fatal(err)
		}
		if got := f.why("o"); !strings.Contains(got, "; somebody has paused a consumer of the list until T: nats consumer resume") {
			t.Fatalf("got %s", got)
		}
		if got := f.lists(); len(got) != 1 || got[0].PausedUntil != schemas.At(until) {
			t.Fatalf("got %+v, want one list that is paused until %v", got, until)
		}
		if _, err := f.js.ResumeConsumer(t.Context(), ns.StreamTasks("main"), topology.Consumer); err != nil {
			t.Fatal(err)
		}
		consumer, err := f.js.Consumer(t.Context(), ns.StreamTasks("main"), topology.Consumer)
		if err != nil {
			t.Fatal(err)
		}
		c := consumer.CachedInfo().Config
		c.MaxDeliver = 1
		if _, err := f.js.UpdateConsumer(t.Context(), ns.StreamTasks("main"), c); err != nil {
			t.Fatal(err)
		}
		if got := f.why("o"); !strings.Contains(got, "; its consumers workers give a task up after so many deliveries") {
			t.Fatalf("got %s", got)
		}
		c.FilterSubject, c.FilterSubjects, c.MaxDeliver = ns.Task("other", 0), nil, -1
		if _, err := f.js.UpdateConsumer(t.Context(), ns.StreamTasks("main"), c); err != nil {
			t.Fatal(err)
		}
		if err := f.js.DeleteConsumer(t.Context(), ns.StreamTasks("main"), subject.ConsumerHigh); err != nil { // which workers miss
			t.Fatal(err)
		}
		if got := f.why("o"); !strings.Contains(got, "; no consumer of the list takes "+ns.Task("main", 0)+", as somebody has changed one: start a worker") {
			t.Fatalf("got %s", got)
		}
	})
}

// A list that the server refuses to make has no place for workers: what is to be changed is the account.
func TestWhyListIsRefused(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		kept := logtest.NewLocal(f.log)
		f.accountOf(embeddedtest.Limits{MaxStreams: 1})
		f.node("a", nil)
		f.decider("order", one(""))
		f.start(startO)
		time.Sleep(3 * time.Second)
		if got := f.why("o"); !strings.Contains(got, "the list cannot be made: ") || !strings.Contains(got, "raise the account's limit of streams") {
			t.Fatalf("got %s, want the refusal and the way out", got)
		}
		known := 0
		for _, e := range kept.AllEntries() {
			if strings.Contains(e.Message, "the task list cannot be made") && e.Level <= logrus.WarnLevel {
				known++
			}
		}
		if known != 1 {
			t.Fatalf("the same refusal is logged %d times, want once", known)
		}
		f.accountOf(embeddedtest.Limits{})
		time.Sleep(10 * time.Second)
		if got := f.why("o"); !strings.HasSuffix(got, "where 1 task waits: start a worker") {
			t.Fatalf("got %s, want that it waits for a worker", got)
		}
	})
}
