package decider_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// long makes n events: a start, signals, and DeciderStarted where asked for.
func long(n int64, started ...int64) []schemas.Event {
	events := make([]schemas.Event, n)
	for i := range events {
		id := int64(i) + 1
		events[i] = schemas.Event{ID: id, Time: schemas.Timestamp(id), Attributes: &schemas.Signal{SignalName: "s" + strconv.FormatInt(id, 10)}}
	}
	events[0].Attributes = &schemas.WorkflowStarted{WorkflowID: "w", Run: "r", WorkflowType: "order"}
	for _, id := range started {
		events[id-1].Attributes = &schemas.DeciderStarted{ScheduledEventID: id - 1}
	}
	return events
}

// window is the task that shows events after previous and up to the last of them.
func window(events []schemas.Event, previous int64) *schemas.DecisionTask {
	last := events[len(events)-1].ID
	return &schemas.DecisionTask{
		V: schemas.Version, Namespace: string(ns), WorkflowID: "w", Run: "r", Type: "order", Token: "token-" + strconv.FormatInt(last, 10),
		PreviousStartedID: previous, StartedID: last, Events: events[previous-events[0].ID+1:], Attempt: 1,
	}
}

// first is the task of a run that has just begun.
func first() *schemas.DecisionTask { return window(long(3, 3), 0) }

// send asks without waiting; the reply comes on h.replies.
func (h *house) send(to string, body []byte, name string) {
	h.t.Helper()
	if err := h.broker.PublishReply(to, "replies."+name, nil, body); err != nil {
		h.t.Fatal(err)
	}
}

// ask asks in JSON, as for a run without a sticky worker, and returns the reply.
func (h *house) ask(task *schemas.DecisionTask) *reply {
	h.t.Helper()
	body, err := schemas.MarshalJSON(task)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.request(ns.Decide(task.Type), body)
}

// askSticky asks one worker in msgpack.
func (h *house) askSticky(task *schemas.DecisionTask, worker string) *reply {
	h.t.Helper()
	body, err := schemas.Marshal(task)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.request(ns.DecideSticky(task.Type, worker), body)
}

func (h *house) request(to string, body []byte) *reply {
	h.t.Helper()
	h.send(to, body, "one")
	return h.receive()
}

// receive waits for the next reply.
func (h *house) receive() *reply {
	h.t.Helper()
	select {
	case m := <-h.replies:
		r := &reply{body: m.Data}
		if err := schemas.Unmarshal(m.Data, &r.DecisionReply); err != nil {
			h.t.Fatalf("reply %q: %v", m.Data, err)
		}
		return r
	case <-time.After(time.Minute):
		h.t.Fatal("no reply within a minute")
		return nil
	}
}

// silence fails if a reply comes within d of virtual time.
func (h *house) silence(d time.Duration) {
	h.t.Helper()
	select {
	case m := <-h.replies:
		h.t.Fatalf("got reply %q, want none", m.Data)
	case <-time.After(d):
	}
}

type reply struct {
	schemas.DecisionReply
	body []byte
}

// base is what the broker tells about a committed reply.
func (r *reply) base(completed int64) *schemas.DecisionBase {
	sum := sha256.Sum256(r.body)
	return &schemas.DecisionBase{CompletedID: completed, Digest: hex.EncodeToString(sum[:8])}
}

func (r *reply) wantDecisions(t *testing.T, want ...schemas.DecisionType) {
	t.Helper()
	if r.Error != nil {
		t.Fatalf("got error %+v, want decisions %v", r.Error, want)
	}
	if len(r.Decisions) != len(want) {
		t.Fatalf("got %d decisions, want %v", len(r.Decisions), want)
	}
	for i, d := range r.Decisions {
		if d.Type() != want[i] {
			t.Fatalf("decision %d is %s, want %s", i, d.Type(), want[i])
		}
	}
}

// histories plays api.history for one run.
type histories struct {
	mu       sync.Mutex
	events   []schemas.Event
	most     int // events a page
	refusals []*schemas.Error
	requests []schemas.HistoryRequest
}

func (h *house) serveHistory(events []schemas.Event, most int) *histories {
	h.t.Helper()
	s := &histories{events: events, most: most}
	h.subscribe(h.broker, ns.API("history"), func(m natsconn.Msg) {
		if got := m.Header.Get(schemas.ContentTypeHeader); got != schemas.ContentTypeMsgpack {
			h.t.Errorf("content type of a history request is %q", got)
		}
		var q schemas.HistoryRequest
		if err := schemas.Unmarshal(m.Data, &q); err != nil {
			h.t.Errorf("history request: %v", err)
		}
		body, err := schemas.Marshal(s.answer(q))
		if err != nil {
			h.t.Errorf("history response: %v", err)
		}
		if err := m.Respond(nil, body); err != nil {
			h.t.Errorf("respond: %v", err)
		}
	})
	h.flush(h.broker)
	return s
}

func (s *histories) answer(q schemas.HistoryRequest) *schemas.HistoryResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, q)
	if len(s.refusals) > 0 {
		e := s.refusals[0]
		s.refusals = s.refusals[1:]
		return &schemas.HistoryResponse{Run: q.Run, Error: e}
	}
	r := &schemas.HistoryResponse{Run: q.Run, Events: []schemas.Event{}}
	for _, e := range s.events {
		if e.ID <= q.After {
			continue
		}
		if len(r.Events) == s.most || q.Limit > 0 && len(r.Events) == q.Limit {
			r.More = true
			break
		}
		r.Events = append(r.Events, e)
	}
	return r
}

func (s *histories) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// ids are those that the history of a task yields.
func ids(t *testing.T, ctx context.Context, task *decider.Task) []int64 {
	t.Helper()
	var got []int64
	for e, err := range task.History(ctx) {
		if err != nil {
			t.Errorf("history: %v", err)
			return got
		}
		got = append(got, e.ID)
	}
	return got
}

// upTo returns 1 … n.
func upTo(n int64) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = int64(i) + 1
	}
	return all
}

// nothing decides nothing.
func nothing(context.Context, *decider.Task) ([]schemas.Decision, error) { return nil, nil }
