package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

// The deciders and workers of a [fleet], which speak JSON as those in other languages do.

// decisionTask is a decision task as another language sees it.
type decisionTask struct {
	Token             string
	StartedID         int64
	WorkflowID        string
	PreviousStartedID int64
	Attempt           int
	StartMode         string
	Context           any
	More              bool

	SuggestContinueAsNew bool
	ContinueReasons      []string

	Events []decisionEvent
}

type decisionEvent struct {
	ID         int64
	Type       string
	Attributes map[string]any
}

func (t *decisionTask) has(typ string) bool {
	for _, e := range t.Events {
		if e.Type == typ {
			return true
		}
	}
	return false
}

// when decides by the first of the named events that is in the window: pairs of an event and what is decided then. Without any
// of them nothing is.
func when(pairs ...string) func(*decisionTask) string {
	return func(d *decisionTask) string {
		for pair := range slices.Chunk(pairs, 2) {
			if d.has(pair[0]) {
				return pair[1]
			}
		}
		return "[]"
	}
}

// signaled decides that its run completes once a signal is in its window.
var signaled = when("Signal", complete)

// tenMinutes decides that its run sleeps for ten minutes and completes: longer than anything that is done now and then.
func tenMinutes(d *decisionTask) string {
	if d.has("TimerExpired") {
		return complete
	}
	return `[{"type":"ScheduleTimer","attributes":{"timerId":"t","startToFireTimeout":600}}]`
}

// decider answers decision tasks of a type with what f returns: a JSON list of decisions, or "" for no answer.
func (f *fleet) decider(typ string, decide func(*decisionTask) string) *nats.Subscription {
	f.t.Helper()
	sub, err := f.nc.QueueSubscribe(ns.Decide(typ), "deciders", func(m *nats.Msg) {
		var task decisionTask
		if err := json.Unmarshal(m.Data, &task); err != nil {
			f.t.Errorf("decision task %s: %v", m.Data, err)
			return
		}
		if answer := decide(&task); answer != "" {
			if err := m.Respond([]byte(`{"token":"` + task.Token + `","decisions":` + answer + `}`)); err != nil && !errors.Is(err, nats.ErrConnectionClosed) { // the test may be over
				f.t.Error(err)
			}
		}
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.flush()
	return sub
}

const complete = `[{"type":"CompleteWorkflow","attributes":{"result":"done"}}]`

func scheduleActivity(id, more string) string {
	return `{"type":"ScheduleActivity","attributes":{"activityId":"` + id + `","activityType":"work","list":"main"` + more + `}}`
}

// task is an activity task as another language sees it.
type task struct {
	f                         *fleet
	msg                       jetstream.Msg
	Token, Report, ActivityID string
	WorkflowID                string
	Beat                      string
	HeartbeatDetails          any
	Attempt                   int
	NotIdempotent             bool
	sequence, delivered       uint64
}

// pull takes the next task of list main, or fails after a minute.
func (f *fleet) pull() *task {
	f.t.Helper()
	t := f.tryPull(time.Minute)
	if t == nil {
		f.t.Fatal("no task came")
	}
	return t
}

func (f *fleet) tryPull(wait time.Duration) *task {
	f.t.Helper()
	deadline := time.Now().Add(wait)
	for time.Now().Before(deadline) {
		c, err := f.js.Consumer(f.t.Context(), ns.StreamTasks("main"), topology.Consumer)
		if err != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		batch, err := c.Fetch(1, jetstream.FetchMaxWait(max(time.Until(deadline), time.Second)))
		if err != nil {
			f.t.Fatal(err)
		}
		for m := range batch.Messages() {
			meta, err := m.Metadata()
			if err != nil {
				f.t.Fatal(err)
			}
			t := &task{f: f, msg: m, sequence: meta.Sequence.Stream, delivered: meta.NumDelivered}
			if err := json.Unmarshal(m.Data(), t); err != nil {
				f.t.Fatal(err)
			}
			return t
		}
	}
	return nil
}

// report publishes an outcome and waits for the stream to have it.
func (t *task) report(kind, more string) {
	t.f.t.Helper()
	t.f.publish(t.Report, `{"token":"`+t.Token+`","kind":"`+kind+`"`+more+`}`)
}

func (t *task) success() {
	t.f.t.Helper()
	t.report("success", `,"result":"fine"`)
	if err := t.msg.Ack(); err != nil {
		t.f.t.Fatal(err)
	}
}

// begin asks whether this delivery may run.
func (t *task) begin(nonce string) schemas.Permission {
	t.f.t.Helper()
	inbox := t.f.nc.NewInbox()
	sub, err := t.f.nc.SubscribeSync(inbox)
	if err != nil {
		t.f.t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	for range 20 {
		t.report("begin", fmt.Sprintf(`,"taskSequence":%d,"redelivered":%t,"nonce":"%s","replyTo":"%s"`, t.sequence, t.delivered > 1, nonce, inbox))
		ctx, cancel := context.WithTimeout(t.f.t.Context(), 5*time.Second)
		m, err := sub.NextMsgWithContext(ctx)
		cancel()
		if err != nil {
			continue
		}
		var p schemas.Permission
		if err := json.Unmarshal(m.Data, &p); err != nil {
			t.f.t.Fatal(err)
		}
		return p
	}
	t.f.t.Fatal("the question is never answered")
	return schemas.Permission{}
}
