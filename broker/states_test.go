package broker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/states"
	"github.com/droverhq/drover/schemas"
)

// State keys by raw deciders.

func stateDecision(typ, key, more string) string {
	return `{"type":"` + typ + `","attributes":{"key":"` + key + `"` + more + `}}`
}

// adder decides that its run adds 1 to the key n as often as times says: it reads, and writes only if nobody has written since.
func adder(times int) func(*decisionTask) string {
	var mu sync.Mutex
	done := map[string]int{}
	return func(d *decisionTask) string {
		mu.Lock()
		defer mu.Unlock()
		answer := ""
		for _, e := range d.Events {
			switch e.Type {
			case "StateRead":
				before, _ := e.Attributes["value"].(float64)
				require := fmt.Sprintf(`{"equals":%v}`, before)
				if e.Attributes["value"] == nil {
					require = `{"when":"absent"}`
				}
				answer = "[" + stateDecision("SetState", "n", fmt.Sprintf(`,"value":%v,"require":%s`, before+1, require)) + "]"
			case "StateSet":
				done[fmt.Sprint(d.WorkflowID, "#", e.ID)] = 1
				answer = "[" + stateDecision("GetState", "n", "") + "]"
				if added(done, d.WorkflowID) == times {
					answer = complete
				}
			case "WorkflowStarted", "StateRefused":
				answer = "[" + stateDecision("GetState", "n", "") + "]"
			}
		}
		if answer == "" {
			return "[]"
		}
		return answer
	}
}

// added counts the writes of a workflow that were answered, each once however often its decider is asked.
func added(done map[string]int, id string) (n int) {
	for key := range done {
		if strings.HasPrefix(key, id+"#") {
			n++
		}
	}
	return n
}

// state returns the record of a key; nil if there is none.
func (f *fleet) state(scope, key string) (*schemas.StateRecord, uint64) {
	f.t.Helper()
	value, rev, err := f.post.KVGet(f.t.Context(), ns.BucketState(), schemas.StateKey(scope, key))
	if errors.Is(err, natsconn.ErrNotFound) {
		return nil, 0
	}
	if err != nil {
		f.t.Fatal(err)
	}
	r, err := schemas.ParseState(schemas.StateKey(scope, key), value)
	if err != nil {
		f.t.Fatal(err)
	}
	return r, rev
}

// answers are the events about state keys and locks in the latest run of a workflow, with what they show.
func (f *fleet) answers(id string) (all []string) {
	f.t.Helper()
	for _, e := range f.recorded(id) {
		switch a := e.Attributes.(type) {
		case *schemas.StateRead:
			all = append(all, "read "+a.Key+" "+text(a.Value))
		case *schemas.StateSet:
			all = append(all, "set "+a.Key)
		case *schemas.StateCleared:
			all = append(all, "cleared "+a.Key)
		case *schemas.StateRefused:
			all = append(all, "refused "+a.Key+" "+string(a.Cause)+" "+text(a.Value))
		case *schemas.LockAcquired:
			all = append(all, "acquired "+a.Lock)
		case *schemas.LockBroken:
			all = append(all, "broken "+a.Lock+" "+string(a.Cause))
		case *schemas.LockReleased:
			all = append(all, "released "+a.Lock)
		}
	}
	return all
}

func text(p schemas.Payload) string {
	if len(p) == 0 {
		return "-"
	}
	return string(p)
}

func (f *fleet) wantAnswers(id string, want ...string) {
	f.t.Helper()
	if got := f.answers(id); !slices.Equal(got, want) {
		f.t.Fatalf("%s: got %q, want %q", id, got, want)
	}
}

// script decides that its run does one thing after the other, each when the one before is answered, and completes. A step "wait"
// waits for a signal.
func script(steps ...string) func(*decisionTask) string {
	var mu sync.Mutex
	next := map[string]int{}
	return func(d *decisionTask) string {
		mu.Lock()
		defer mu.Unlock()
		n := next[d.WorkflowID]
		if n > 0 && steps[n-1] == "wait" && !d.has("Signal") {
			return "[]"
		}
		if n == len(steps) {
			return complete
		}
		next[d.WorkflowID]++
		if steps[n] == "wait" {
			return "[]"
		}
		return "[" + steps[n] + "]"
	}
}

// What is set is read, by name and scope; a requirement is judged with the write; what is cleared is gone, its key too.
func TestStateKeys(t *testing.T) {
	virtually(t, 4, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		absent := `,"require":{"when":"absent"}`
		f.decider("first", script(
			stateDecision("GetState", "k", ""), stateDecision("SetState", "k", `,"value":{"a":1}`+absent), stateDecision("GetState", "k", ""),
			stateDecision("SetState", "k", `,"scope":"s/1","value":"x"`), stateDecision("GetState", "k", `,"scope":"s/1"`)))
		f.start(`{"workflowId":"w1","type":"first"}`)
		f.completes("w1")
		f.wantAnswers("w1", "read k -", "set k", `read k {"a":1}`, "set k", `read k "x"`)
		r, rev := f.state("", "k")
		if r == nil || string(r.Value) != `{"a":1}` || r.By.WorkflowID != "w1" || r.Cleared {
			t.Fatalf("the key is %+v", r)
		}
		set := f.happens("w1", "StateSet").Attributes.(*schemas.StateSet)
		if set.Revision != rev || r.By.EventID != set.ScheduledEventID {
			t.Fatalf("got %+v, the key is %+v with revision %d", set, r, rev)
		}

		f.decider("second", script(
			stateDecision("SetState", "k", `,"value":2`+absent), stateDecision("SetState", "k", `,"value":2,"require":{"equals":{"a":1}}`),
			stateDecision("GetState", "k", ""), stateDecision("ClearState", "k", ""), stateDecision("ClearState", "k", ""), stateDecision("GetState", "k", "")))
		f.start(`{"workflowId":"w2","type":"second"}`)
		f.completes("w2")
		f.wantAnswers("w2", `refused k REQUIREMENT_NOT_MET {"a":1}`, "set k", "read k 2", "cleared k", "cleared k", "read k -")
		for range 600 {
			if r, _ = f.state("", "k"); r == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Fatalf("the key is still there: %+v", r)
	})
}

// 100 increments by check-and-set, by 20 runs in four partitions, over two owners of which one stops and one dies, end exact.
func TestIncrementsEndExact(t *testing.T) {
	virtually(t, 4, func(t *testing.T, f *fleet) {
		f.decider("add", adder(5))
		a := f.node("a", nil)
		b := f.node("b", nil)
		time.Sleep(30 * time.Second)
		var starts sync.WaitGroup
		for i := range 20 {
			starts.Go(func() { f.start(fmt.Sprintf(`{"workflowId":"w%d","type":"add"}`, i)) })
		}
		starts.Wait()
		f.node("c", nil)
		b.stop()
		a.kill()
		for i := range 20 {
			f.completesAtLast(fmt.Sprintf("w%d", i))
		}
		if r, _ := f.state("", "n"); r == nil || string(r.Value) != "100" {
			t.Fatalf("the key is %+v, want 100", r)
		}
	})
}

// A run that is repeated after its owner has died after the write finds the write, although others have written since.
func TestRepeatedWriteIsRecognised(t *testing.T) {
	for name, write := range map[string]string{
		"set":   stateDecision("SetState", "k", `,"value":1`),
		"clear": stateDecision("ClearState", "k", ""),
	} {
		t.Run(name, func(t *testing.T) { recognised(t, write) })
	}
}

func recognised(t *testing.T, write string) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		// another is what the owner of some other partition writes.
		another := func(id string) {
			r, rev := f.state("", "k")
			if r == nil {
				r = states.Fresh("k", "")
			}
			states.Read(r, rev)
			op := states.Op{Decision: schemas.DecideSetState, Value: schemas.Payload(`"` + id + `"`), Write: schemas.StateWrite{WorkflowID: id, Run: "r", EventID: 5}}
			if got := states.Do(r, &op, 1); !got.Changed {
				t.Fatalf("%s writes nothing: %+v", id, got)
			}
			body, err := schemas.MarshalJSON(r)
			if err == nil {
				_, err = f.post.KVUpdate(t.Context(), ns.BucketState(), "=.k", body, rev, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		another("before")
		f.decider("write", script(write, stateDecision("GetState", "k", "")))
		a := f.node("a", cutLaterState())
		f.start(`{"workflowId":"w1","type":"write"}`)
		<-a.wire.Killed()
		r, rev := f.state("", "k")
		for ; r.By.WorkflowID != "w1"; r, rev = f.state("", "k") { // the server may not have come to it yet
			time.Sleep(time.Millisecond)
		}
		for i := range 20 {
			another(fmt.Sprint("other", i))
		}
		f.node("b", nil)
		f.completesAtLast("w1")
		kind := "set"
		if strings.Contains(write, "ClearState") {
			kind = "cleared"
		}
		f.wantAnswers("w1", kind+" k", `read k "other19"`)
		for _, e := range f.events("w1") {
			if s, ok := e.Attributes.(*schemas.StateSet); ok && s.Revision != rev {
				t.Fatalf("the write has revision %d, the answer says %d", rev, s.Revision)
			}
		}
		r, _ = f.state("", "k")
		if slices.ContainsFunc(r.Unsettled, func(w schemas.StateWrite) bool { return w.WorkflowID == "w1" }) && len(r.Unsettled) > 100 {
			t.Fatalf("the key keeps what is settled: %+v", r)
		}
	})
}

// A key that many runs write, one after the other, keeps few writes: those that are settled are taken out.
func TestSettledWritesAreTakenOut(t *testing.T) {
	virtually(t, 2, func(t *testing.T, f *fleet) {
		f.decider("write", script(stateDecision("SetState", "k", `,"value":1`)))
		a := f.node("a", nil)
		for i := range 60 {
			if i == 30 { // the next owner does not know what is settled, and looks it up
				a.kill()
				f.node("b", nil)
			}
			id := fmt.Sprint("w", i)
			f.start(`{"workflowId":"` + id + `","type":"write"}`)
			f.completesAtLast(id)
		}
		time.Sleep(time.Minute)
		if r, _ := f.state("", "k"); len(r.Unsettled) > 0 || r.By.WorkflowID != "w59" {
			b, _ := json.Marshal(r)
			t.Fatalf("the key keeps %d writes: %s", len(r.Unsettled), b)
		}
	})
}

// A decider may not ask for what breaks a rule, and the run goes on.
func TestStateKeysThatAreRefused(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("bad", script(
			stateDecision("GetState", "", ""), stateDecision("SetState", "k", `,"value":1,"require":{"wen":"absent"}`),
			stateDecision("SetState", "k", `,"value":"`+strings.Repeat("x", schemas.MaxStateValue)+`"`), stateDecision("ClearState", "k", `,"scope":"a\u0000"`)))
		f.start(`{"workflowId":"w1","type":"bad"}`)
		f.completes("w1")
		f.wantAnswers("w1", "refused  INVALID_ATTRIBUTES -", "refused k INVALID_ATTRIBUTES -", "refused k INVALID_ATTRIBUTES -", "refused k INVALID_ATTRIBUTES -")
		if r := f.happens("w1", "StateRefused").Attributes.(*schemas.StateRefused); !strings.Contains(r.Details, "key") {
			t.Fatalf("got %+v, want the field", r)
		}
	})
}

// What is read of state keys counts in pages and windows: a history of many large values is read, and its decider asked.
func TestManyLargeStateValues(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		const reads = 40
		f.decider("order", func(d *decisionTask) string {
			switch {
			case d.has("StateRead") && d.More && d.Attempt > 1: // all are there by now, and the window has the first of them
				return complete
			case d.has("StateRead"):
				return ""
			case d.has("WorkflowStarted"):
				return "[" + stateDecision("SetState", "k", `,"value":"`+strings.Repeat("x", 60<<10)+`"`) + "]"
			case d.has("StateSet"):
				return "[" + stateDecision("GetState", "k", "") + strings.Repeat(","+stateDecision("GetState", "k", ""), reads-1) + "]"
			}
			return ""
		})
		f.start(startO)
		f.completes("o")
		if got := f.answers("o"); len(got) != 1+reads {
			t.Fatalf("got %d answers, want that of the first request and %d values", len(got), reads)
		}
	})
}
