package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// shout publishes like anybody with a NATS client, and demands that it is stored.
func shout(w *world, js jetstream.JetStream, subj, body string) {
	w.t.Helper()
	m := &nats.Msg{Subject: subj, Data: []byte(body)}
	if strings.Contains(subj, ".in.") {
		m.Header = natsconn.Addressed(subj) // as a broker would
	}
	if _, err := js.PublishMsg(w.t.Context(), m); err != nil {
		w.t.Fatalf("publish %s: %v", subj, err)
	}
}

// Signals are published while nothing of ours runs: a bare NATS server and a bare client. When a broker comes, what was
// for an open workflow is in its history once, what was for nobody is in the dead letters, and P-12: what came after a
// start that no broker had read yet is applied.
func TestSignalsWhileNothingOfOursRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.bareNATS()
	server := w.beside("one", "broker,timers,ops")
	puppet := w.role("puppet-decider", "order")
	open := w.start("order", "open", nil, startOptions{})
	n, task := w.task(puppet)
	w.decide(puppet, n, task, "")
	w.until(open, 4, schemas.EventDeciderCompleted)
	closed := w.start("order", "closed", nil, startOptions{})
	n, task = w.task(puppet)
	w.decide(puppet, n, task, completeDecision)
	w.completes(closed, `"done"`)
	puppet.Kill()
	server.Stop(patience)

	nc := w.plain()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Request("drover.default.api.why", []byte(`{"workflowId":"open"}`), patience); err != nats.ErrNoResponders {
		t.Fatalf("got %v, want nobody of ours", err)
	}
	for i := range 5 {
		shout(w, js, "drover.default.signal.open.ready", fmt.Sprintf(`{"n":%d}`, i))
	}
	shout(w, js, "drover.default.signal.nobody.ready", `"to nobody"`)
	shout(w, js, "drover.default.signal.closed.ready", `"too late"`)
	// A start as the API stores it, before any broker reads it; then a signal after it.
	partition := subject.Partition("born", 4)
	shout(w, js, fmt.Sprintf("drover.default.in.%d.born.start", partition), `{"workflowId":"born","run":"r1","type":"order"}`)
	shout(w, js, "drover.default.signal.born.ready", `"early bird"`)

	w.beside("two", "broker,timers,ops")
	born := w.client.Run("born", "")
	w.exists(born)
	if s, ok := w.has(born, schemas.EventSignal).Attributes.(*schemas.Signal); !ok || string(s.Input) != `"early bird"` {
		t.Fatalf("got %+v, want the signal that came after the start", s)
	}
	nobody := w.letter("unknown-workflow", storedSignal("nobody", "ready"))
	if string(nobody.Body) != `"to nobody"` || nobody.Details == "" {
		t.Fatalf("got %+v, want the signal with its input and a sentence", nobody)
	}
	late := w.letter("closed-workflow", storedSignal("closed", "ready"))
	if string(late.Body) != `"too late"` {
		t.Fatalf("got %+v, want the signal with its input", late)
	}
	w.until(open, 10, schemas.EventSignal) // all five, and one DeciderScheduled among them
	w.role("stranger-decider", "order")
	w.completes(open, `"done"`)
	w.completes(born, `"done"`)

	a := w.verify()
	for i := range 5 {
		if n := a.signals["open"][fmt.Sprintf(`{"n":%d}`, i)]; n != 1 {
			t.Errorf("signal %d is in the history %d times, want once", i, n)
		}
	}
	if n := a.signals["born"][`"early bird"`]; n != 1 {
		t.Errorf("the signal after the start is in the history %d times, want once", n)
	}
	if all := w.dead(""); len(all) != 2 {
		t.Errorf("got %d dead letters %+v, want 2", len(all), all)
	}
}

// storedSignal is the subject that a signal has in its stream, of a namespace with 4 partitions.
func storedSignal(id, name string) string {
	return namespace.SignalStored(subject.Partition(id, 4), id, name)
}
