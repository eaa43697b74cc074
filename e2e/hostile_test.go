package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
)

// wrongTypes is the one of bodies that is JSON with the right names.
const wrongTypes = "wrong types"

// bodies are what no reader may die of. The first is the five bytes that end the msgpack decoder, after a version.
var bodies = map[string][]byte{
	"huge array":      {0x01, 0xdd, 0xff, 0xff, 0xff, 0xff},
	"huge map":        {0x01, 0xdf, 0xff, 0xff, 0xff, 0xff},
	"truncated":       {0x01, 0x82, 0xa1},
	"deep":            append([]byte{0x01}, slices.Repeat([]byte{0x91}, 4096)...),
	"version only":    {0x01},
	"unknown version": {0x07, 0x80},
	"future JSON":     []byte(`{"v":99,"workflowId":"victim","type":"x","name":"x","list":"x","token":"x","kind":"started"}`),
	"invalid JSON":    []byte(`{"workflowId":`),
	"deep JSON":       []byte(strings.Repeat(`{"a":`, 4096) + "1" + strings.Repeat("}", 4096)),
	wrongTypes:        []byte(`{"workflowId":{"a":1},"type":[],"name":7,"list":{},"token":[],"kind":{},"run":[],"limit":"x","after":[],"status":7}`),
	"text":            []byte("hello"),
}

// refusal asks the API and returns its error.
func refusal(w *world, nc *nats.Conn, verb string, body []byte) schemas.Error {
	w.t.Helper()
	m, err := nc.Request(namespace.API(verb), body, patience)
	if err != nil {
		w.t.Fatalf("%s %q: %v", verb, body, err)
	}
	var a struct {
		Error *schemas.Error `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &a); err != nil || a.Error == nil {
		w.t.Fatalf("%s %q: got %q, %v, want an error", verb, body, m.Data, err)
	}
	return *a.Error
}

func wantRefusal(w *world, got schemas.Error, code schemas.Code, parts ...string) {
	w.t.Helper()
	if got.Code != code {
		w.t.Errorf("got code %s, want %s: %+v", got.Code, code, got)
	}
	for _, part := range parts {
		if !strings.Contains(got.Message+" "+got.Field+" "+got.Hint, part) {
			w.t.Errorf("got %+v, want it to hold %q", got, part)
		}
	}
}

var verbs = []string{"start", "signal", "describe", "result", "why", "history", "pause", "resume", "list", "dead", "tasklist"}

// aboutOne are the verbs that name a workflow which must exist.
var aboutOne = []string{"signal", "describe", "result", "why", "history", "pause", "resume"}

// Bad input over the wire. Nothing of it is lost without a word, and the server is the same process afterwards.
func TestBadInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.embedded("--profile", "dev")
	nc := w.plain()
	for name, fn := range map[string]func(*world, *nats.Conn){
		"unknown type":     badType,
		"unknown id":       badID,
		"closed workflow":  badClosed,
		"hostile ids":      badNames,
		"api":              badAPI,
		"inbox":            badInbox,
		"signals":          badSignals,
		"decisions":        badDecisions,
		"hostile decision": badReplies,
		"duplicates":       badDuplicates,
		"late decision":    badLate,
		"stale outcome":    badOutcome,
	} {
		t.Run(name, func(t *testing.T) { fn(w.in(t), nc); server.Alive() })
	}
	server.Alive()
	w.verify()
}

// An unknown type waits, and why says for what.
func badType(w *world, _ *nats.Conn) {
	run := w.start("later", "waits", nil, startOptions{})
	ctx, cancel := w.bounded()
	defer cancel()
	poll.Until(w.t, patience, "why says that nobody listens", func() bool {
		because, err := run.Why(ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		return strings.Contains(because, `no decider for type "later" is listening`)
	})
	w.is(run, "WorkflowStarted\nDeciderScheduled")
	w.role("stranger-decider", "later")
	w.completes(run, `"done"`)
	w.is(run, fiveEvents)
}

// aboutRun is a request of a verb that is about one workflow. Only a signal has a name.
func aboutRun(verb, id string) []byte {
	if verb == "signal" {
		return fmt.Appendf(nil, `{"workflowId":"%s","name":"x"}`, id)
	}
	return fmt.Appendf(nil, `{"workflowId":"%s"}`, id)
}

func badID(w *world, nc *nats.Conn) {
	for _, verb := range aboutOne {
		got := refusal(w, nc, verb, aboutRun(verb, "ghost"))
		wantRefusal(w, got, schemas.CodeNotFound, `there is no workflow with the id "ghost": it was never started, or is purged`, "workflowId", "drover list")
	}
	// By plain publish, too: it goes to the dead letters.
	if err := nc.Publish(namespace.Signal("ghost", "x"), []byte("1")); err != nil {
		w.t.Fatal(err)
	}
	if l := w.letter("unknown-workflow", storedSignal("ghost", "x")); string(l.Body) != "1" || !strings.Contains(l.Details, `there is no workflow with the id "ghost": it was never started, or is purged; start it first, and signal again`) {
		w.t.Errorf("got %+v", l)
	}
}

func badClosed(w *world, nc *nats.Conn) {
	w.role("stranger-decider", "short")
	run := w.start("short", "closed", nil, startOptions{RequestID: "q1"})
	w.completes(run, `"done"`)
	for _, verb := range []string{"signal", "pause", "resume"} {
		got := refusal(w, nc, verb, aboutRun(verb, "closed"))
		wantRefusal(w, got, schemas.CodeClosed, `workflow "closed" is closed (completed)`, run.RunID)
	}
	if again := w.start("short", "closed", nil, startOptions{RequestID: "q1"}); again.RunID != run.RunID {
		w.t.Errorf("a repeat of the start got run %s, want %s", again.RunID, run.RunID)
	}
	if err := nc.Publish(namespace.Signal("closed", "x"), []byte("2")); err != nil {
		w.t.Fatal(err)
	}
	if l := w.letter("closed-workflow", storedSignal("closed", "x")); string(l.Body) != "2" || !strings.Contains(l.Details, "the workflow is closed (completed)") {
		w.t.Errorf("got %+v", l)
	}
	w.is(run, fiveEvents)
}

// Any text is an id, and means itself: no token of a subject can be smuggled in.
func badNames(w *world, nc *nats.Conn) {
	puppet := w.role("puppet-decider", "named")
	ids := []string{"a.b", "a*b", "a>b", "a b", "*", ">", ".", "..", "a.*.>", "%2E", "ü/🐂", "fence", "-", strings.Repeat("x", 256)}
	for _, id := range ids {
		run := w.start("named", id, nil, startOptions{})
		n, task := w.task(puppet)
		if task.WorkflowID != id {
			w.t.Fatalf("got the task of %q, want %q", task.WorkflowID, id)
		}
		w.decide(puppet, n, task, "")
		w.until(run, 4, schemas.EventDeciderCompleted)
	}
	for _, id := range ids { // all are open now: a signal that goes astray would be seen
		if err := nc.Publish(namespace.Signal(id, "poke me."), fmt.Appendf(nil, "%q", id)); err != nil {
			w.t.Fatal(err)
		}
		n, task := w.task(puppet)
		s := signalIn(w, task)
		var text string // the escapes of a JSON payload are the encoder's
		if err := s.Input.Decode(&text); err != nil || task.WorkflowID != id || s.SignalName != "poke me." || text != id {
			w.t.Fatalf("%q: got the task of %q with %+v: %v", id, task.WorkflowID, s, err)
		}
		w.decide(puppet, n, task, completeDecision)
		w.completes(w.client.Run(id, ""), `"done"`)
	}
	for id, part := range map[string]string{
		strings.Repeat("x", 257): "257 bytes", strings.Repeat("x", 300): "300 bytes", "": "it is empty", `a\nb`: "control character", `\u0000`: "control character",
	} {
		for _, verb := range aboutOne {
			got := refusal(w, nc, verb, aboutRun(verb, id))
			wantRefusal(w, got, schemas.CodeInvalid, part, "workflowId")
		}
		if id == "" {
			continue // a start without an id gets a new one
		}
		got := refusal(w, nc, "start", fmt.Appendf(nil, `{"workflowId":"%s","type":"named"}`, id))
		wantRefusal(w, got, schemas.CodeInvalid, part, "workflowId")
	}
}

// signalIn returns the one signal in the window of a task.
func signalIn(w *world, task schemas.DecisionTask) *schemas.Signal {
	w.t.Helper()
	var found []*schemas.Signal
	for _, e := range task.Events {
		if s, ok := e.Attributes.(*schemas.Signal); ok {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		w.t.Fatalf("%s: got %d signals in the window, want 1:\n%s", task.WorkflowID, len(found), notation(task.Events))
	}
	return found[0]
}

func badAPI(w *world, nc *nats.Conn) {
	for _, verb := range verbs {
		for name, body := range bodies {
			part := "one JSON object"
			if name == wrongTypes {
				part = ": want a"
			}
			got := refusal(w, nc, verb, body)
			wantRefusal(w, got, schemas.CodeInvalid, "the request cannot be decoded", part)
			if w.t.Failed() {
				w.t.Fatalf("%s: %s", verb, name)
			}
		}
		got := refusal(w, nc, verb, nil)
		wantRefusal(w, got, schemas.CodeInvalid, "the body is empty")
	}
}

// What somebody puts into an inbox that no broker can read is parked, with the bytes as they came.
func badInbox(w *world, nc *nats.Conn) {
	run := w.start("inboxed", "victim", nil, startOptions{})
	part := subject.Partition("victim", 4)
	at := fmt.Sprintf("drover.default.in.%d.victim.", part)
	for _, kind := range []string{"start", "act.work", "alarm", "pause", "resume"} {
		for name, body := range bodies {
			subj := at + kind
			if err := nc.Publish(subj, body); err != nil {
				w.t.Fatal(err)
			}
			poll.Until(w.t, patience, kind+" "+name+" in the dead letters", func() bool {
				return slices.ContainsFunc(w.dead("undecodable"), func(e schemas.DeadEntry) bool {
					return e.Subject == subj && string(e.Body) == string(body) && e.Details != ""
				})
			})
		}
	}
	for _, subj := range []string{at + "nonsense", fmt.Sprintf("drover.default.in.%d.%%ZZ.start", part)} {
		if err := nc.Publish(subj, []byte(`{"type":"x"}`)); err != nil {
			w.t.Fatal(err)
		}
		w.letter("undecodable", subj)
	}
	w.is(run, "WorkflowStarted\nDeciderScheduled")
	w.role("stranger-decider", "inboxed")
	w.completes(run, `"done"`)
	w.is(run, fiveEvents)
}

// A signal's body is its input, whatever it is; only its subject can be wrong.
func badSignals(w *world, nc *nats.Conn) {
	puppet := w.role("puppet-decider", "listens")
	run := w.start("listens", "ear", nil, startOptions{})
	n, task := w.task(puppet)
	w.decide(puppet, n, task, "")
	w.until(run, 4, schemas.EventDeciderCompleted)
	for name, body := range bodies {
		if err := nc.Publish("drover.default.signal.ear.noise", body); err != nil {
			w.t.Fatal(err)
		}
		n, task := w.task(puppet)
		if s := signalIn(w, task); string(s.Input) != string(body) {
			w.t.Fatalf("%s: got %q, want the signal as it came", name, s.Input)
		}
		w.decide(puppet, n, task, "")
	}
	if err := nc.Publish("drover.default.signal.ear.%ZZ", []byte("1")); err != nil {
		w.t.Fatal(err)
	}
	w.letter("undecodable", fmt.Sprintf("drover.default.sig.%d.ear.%%ZZ", subject.Partition("ear", 4)))
	if err := nc.Publish("drover.default.signal.ear.end", nil); err != nil {
		w.t.Fatal(err)
	}
	n, task = w.task(puppet)
	w.decide(puppet, n, task, completeDecision)
	w.completes(run, `"done"`)
}
