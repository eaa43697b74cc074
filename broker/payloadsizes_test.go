package broker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

var payloadSizes = flag.Int("payload-sizes", 0, "test every size of payloads with this max_payload, in KiB, and not only some")

// sizeCase is how many payloads of which size stand in one message.
type sizeCase struct {
	Kind  string `json:"kind"`
	Size  int    `json:"size"`
	Count int    `json:"count"`
	// Of names the case: its children begin with it, and it is the workflow that is signaled.
	Of string `json:"of"`
}

// content is the payload of a case: text, bytes that are none, or what JSON makes six times as
// large.
func (c sizeCase) content() schemas.Payload {
	switch c.Size % 3 {
	case 1:
		return bytes.Repeat([]byte{0xff}, c.Size)
	case 2:
		return schemas.Text(strings.Repeat("<", c.Size))
	}
	return schemas.Text(strings.Repeat("x", c.Size))
}

func (c sizeCase) String() string { return fmt.Sprintf("%d × %d bytes, %s", c.Count, c.Size, c.Kind) }

// sizesHouse is a fleet with Go workers of every kind beside it.
type sizesHouse struct {
	*fleet
	client *drover.Client
	n      int
}

// a new workflow id.
func (h *sizesHouse) id() string { h.n++; return fmt.Sprintf("w%d", h.n) }

func sizesOn(t *testing.T, maxPayload int, f func(*testing.T, *sizesHouse)) {
	t.Helper()
	virtuallyOn(t, embedded.Options{DontListen: true, MaxPayload: maxPayload}, 1, func(t *testing.T, fl *fleet) {
		fl.node("a", nil)
		conn := fl.dial(fl)
		defer conn.Close()
		client, err := drover.Connect(t.Context(), &drover.Options{Conn: conn.NATS(), Logger: fl.log})
		if err != nil {
			t.Fatal(err)
		}
		deciders := client.Deciders(nil)
		deciders.Register("go", decider.Func(decideSizes))
		worker := activity.New(conn, &activity.Options{Lists: []string{"sizes"}, Logger: fl.log})
		activity.Register(worker, "give", func(_ context.Context, c sizeCase) ([]byte, error) {
			if c.Kind == "activity fails" {
				return nil, activity.Fail("large", c.content())
			}
			return c.content(), nil
		})
		ctx, cancel := context.WithCancel(context.Background())
		var all sync.WaitGroup
		for _, run := range []func(context.Context) error{deciders.Run, worker.Run} {
			all.Go(func() {
				if err := run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		defer func() { cancel(); all.Wait() }()
		fl.decider("json", func(d *decisionTask) string { return decideSizesInJSON(t, d) })
		f(t, &sizesHouse{fleet: fl, client: client})
	})
}

// decided are the decisions of a case.
func (c sizeCase) decided() (decisions []schemas.Decision) {
	p := c.content()
	for i := range c.Count {
		id := fmt.Sprintf("a%d", i)
		switch c.Kind {
		case "activities":
			decisions = append(decisions, decider.Schedule(id, "none", p, decider.List("none")))
		case "markers":
			decisions = append(decisions, decider.Marker(id, p))
		case "children":
			decisions = append(decisions, decider.StartChild(c.Of+id, "idle", p))
		case "external":
			decisions = append(decisions, decider.SignalExternal(c.Of, id, p))
		case "completes":
			decisions = append(decisions, decider.Complete(p))
		case "fails":
			decisions = append(decisions, decider.Fail("large", p))
		case "continues":
			decisions = append(decisions, decider.ContinueAsNew(p))
		case "activity gives", "activity fails":
			decisions = append(decisions, decider.Schedule(id, "give", c, decider.List("sizes"), decider.StartToClose(time.Hour)))
		}
	}
	return decisions
}

func decideSizes(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
	var c sizeCase
	started := decider.Started(task.Events())
	if started == nil || json.Unmarshal(started.Input, &c) != nil { // what follows, or the next run
		return nil, nil
	}
	if c.Kind == "context" {
		task.SetContext(c.content())
	}
	return c.decided(), nil
}

func decideSizesInJSON(t *testing.T, d *decisionTask) string {
	var c sizeCase
	if len(d.Events) > 0 && d.Events[0].Type == string(schemas.EventWorkflowStarted) {
		b, err := json.Marshal(d.Events[0].Attributes["input"])
		if err != nil || json.Unmarshal(b, &c) != nil {
			return "[]"
		}
	}
	body, err := schemas.MarshalJSON(&schemas.DecisionReply{Decisions: c.decided()})
	if err != nil {
		t.Error(err)
	}
	var r struct{ Decisions json.RawMessage }
	if err := json.Unmarshal(body, &r); err != nil {
		t.Error(err)
	}
	return string(r.Decisions)
}

// sizeKinds are the ways of payloads through deciders and activities, and the events that hold them
// then.
var sizeKinds = []struct {
	kind  string
	event schemas.EventType
	many  bool // several may stand in one message
}{
	{"activities", schemas.EventActivityScheduled, true},
	{"markers", schemas.EventMarker, true},
	{"children", schemas.EventWorkflowStarted, true},
	{"external", schemas.EventSignal, true},
	{"completes", schemas.EventWorkflowSuccess, false},
	{"fails", schemas.EventWorkflowFailed, false},
	{"continues", schemas.EventWorkflowStarted, false},
	{"context", schemas.EventDeciderCompleted, false},
	{"activity gives", schemas.EventActivitySuccess, false},
	{"activity fails", schemas.EventActivityFailed, false},
}

// holds counts the events of a type that have the content, or refer to it, in a workflow's latest
// run.
func (h *sizesHouse) holds(id string, typ schemas.EventType, content schemas.Payload) (n int) {
	digest := digestOf(content)
	for _, e := range h.recorded(id) {
		if e.Type() != typ {
			continue
		}
		for _, p := range schemas.PayloadFields(e.Attributes) {
			ref, _ := p.Ref()
			if ref != nil && ref.Digest == digest && ref.Size == int64(len(content)) || bytes.Equal(p, content) {
				n++
			}
		}
	}
	return n
}

// decides has a decider of a type decide a case, and wants its payloads in the history, and no
// failure.
func (h *sizesHouse) decides(typ string, c sizeCase, event schemas.EventType) {
	h.t.Helper()
	id := h.id()
	c.Of = id + "."
	switch c.Kind {
	case "external":
		h.start(`{"workflowId":"` + c.Of + `","type":"idle"}`)
	}
	input, err := json.Marshal(c)
	if err != nil {
		h.t.Fatal(err)
	}
	if a := h.start(`{"workflowId":"` + id + `","type":"` + typ + `","input":` + string(input) + `}`); a["error"] != nil {
		h.t.Fatal(a)
	}
	content, got := c.content(), 0
	passed := h.until(10*time.Minute, func() bool {
		switch got = 0; c.Kind {
		case "external":
			got = h.holds(c.Of, event, content)
		case "children":
			for i := range c.Count {
				got += h.holds(fmt.Sprintf("%sa%d", c.Of, i), event, content)
			}
		default:
			got = h.holds(id, event, content)
		}
		return got >= c.Count || h.happened(id, schemas.EventDeciderFailed) > 0
	})
	if failed := h.happened(id, schemas.EventDeciderFailed); !passed || got < c.Count || failed > 0 {
		h.t.Errorf("%s decider, %v: %d are in the history, %d refusals: %.300v", typ, c, got, failed, h.why(id))
	}
}

// why is the reason of the last failure of a decider.
func (h *sizesHouse) why(id string) (reason string) {
	for _, e := range h.recorded(id) {
		if a, ok := e.Attributes.(*schemas.DeciderFailed); ok {
			reason = a.Reason
		}
	}
	return reason
}

// requests sends a payload by the Go client and in JSON: as the input of a start and of its signal,
// as that of a signal, and as the details of a terminate. It passes, or is refused and nothing of
// it is there.
func (h *sizesHouse) requests(c sizeCase) {
	h.t.Helper()
	ctx, content := h.t.Context(), c.content()
	id := h.id()
	opts := &drover.StartOptions{ID: id}
	run, err := h.client.SignalWithStart(ctx, "idle", content, "first", content, opts)
	if err == nil {
		err = run.Signal(ctx, "second", content)
	}
	if err == nil {
		err = run.Terminate(ctx, &drover.TerminateOptions{Details: content})
	}
	if err != nil {
		h.t.Errorf("Go client, %v: %v", c, err)
	} else {
		h.wantHolds(id, c, schemas.EventWorkflowStarted, schemas.EventSignal, schemas.EventWorkflowTerminated)
	}

	id = h.id()
	in, err := json.Marshal(content)
	if err != nil {
		h.t.Fatal(err)
	}
	most, full := int(h.nc.MaxPayload()), true
	for _, r := range []struct{ verb, body string }{
		{"start", `{"workflowId":"` + id + `","type":"idle","input":` + string(in) + `}`},
		{"start", `{"workflowId":"` + id + `","type":"idle","requestId":"q","signal":{"name":"s","input":` + string(in) + `}}`},
		{"signal", `{"workflowId":"` + id + `","name":"t","input":` + string(in) + `}`},
		{"terminate", `{"workflowId":"` + id + `","details":` + string(in) + `}`},
	} {
		if len(r.body) > most { // the client's library refuses it
			full = false
			continue
		}
		e, _ := h.api(r.verb, r.body)["error"].(map[string]any)
		if e != nil && (e["code"] != string(schemas.CodeTooLarge) || e["field"] == nil || e["hint"] == nil) {
			h.t.Errorf("JSON, %s, %v: %v", r.verb, c, e)
		}
		if e != nil {
			full = false
		}
	}
	if full {
		h.wantHolds(id, c, schemas.EventWorkflowStarted, schemas.EventSignal, schemas.EventWorkflowTerminated)
	}
	if len(content) <= most-(64<<10) { // as signals.Publish has it
		id = h.id()
		h.start(`{"workflowId":"` + id + `","type":"idle"}`)
		h.publish(ns.Signal(id, "raw"), string(content))
		h.wantHolds(id, c, schemas.EventSignal)
	}
}

func (h *sizesHouse) wantHolds(id string, c sizeCase, events ...schemas.EventType) {
	h.t.Helper()
	for _, typ := range events {
		if !h.until(5*time.Minute, func() bool { return h.holds(id, typ, c.content()) > 0 }) {
			h.t.Errorf("%v: %s of %s does not hold it: %v", c, typ, id, h.dead())
		}
	}
}

// reports has an activity worker in JSON report a payload.
func (h *sizesHouse) reports(c sizeCase) {
	h.t.Helper()
	result, err := json.Marshal(c.content())
	if err != nil {
		h.t.Fatal(err)
	}
	if len(result)+(4<<10) > int(h.nc.MaxPayload()) {
		return
	}
	id := h.id()
	sub := h.decider("one"+id, when("WorkflowStarted", "["+scheduleActivity("a1", "")+"]"))
	defer func() { _ = sub.Unsubscribe() }()
	h.start(`{"workflowId":"` + id + `","type":"one` + id + `"}`)
	k := h.pull()
	k.report("success", `,"result":`+string(result))
	if err := k.msg.Ack(); err != nil {
		h.t.Fatal(err)
	}
	h.wantHolds(id, c, schemas.EventActivitySuccess)
}

// Payloads of any size pass, however many stand in one message and whatever the server takes, or
// are refused before anything is written by an error that names the field and the way out (R7).
func TestPayloadsOfAnySize(t *testing.T) {
	const full = 32 << 20
	limits := []int{128 << 10, 256 << 10, 1 << 20}
	sizes, counts := []int{1 << 10, 44 << 10, 100<<10 + 1, 250 << 10}, []int{1, 10}
	most := 2 << 20
	if *payloadSizes > 0 {
		limits, counts, most = []int{*payloadSizes << 10}, []int{1, 10, 100}, full
		sizes = nil
		inline, record := 0, max(*payloadSizes<<10-64<<10, 64<<10)
		inline = min(schemas.PayloadThreshold, record/4*3-4<<10)
		for _, around := range []int{1 << 10, 16 << 10, 85 << 10, inline, record / 6, record / 4 * 3, record, schemas.PayloadThreshold, *payloadSizes << 10, 2 << 20} {
			for _, by := range []int{-4 << 10, -1, 0, 1, 2, 5 << 10} {
				if n := around + by; n > 0 && n <= 2<<20 {
					sizes = append(sizes, n)
				}
			}
		}
	}
	for _, limit := range limits {
		for _, kind := range sizeKinds {
			if *payloadSizes == 0 && limit == 256<<10 {
				break // of these only what is asked; what is decided has the smallest limit and the usual one
			}
			t.Run(fmt.Sprintf("%d KiB, %s", limit>>10, kind.kind), func(t *testing.T) {
				if *payloadSizes > 0 {
					for _, size := range sizes {
						sizesOn(t, limit, func(_ *testing.T, h *sizesHouse) { h.all(kind.kind, kind.event, kind.many, []int{size}, counts, most) })
					}
					return
				}
				sizesOn(t, limit, func(_ *testing.T, h *sizesHouse) { h.all(kind.kind, kind.event, kind.many, sizes, counts, most) })
			})
		}
		t.Run(fmt.Sprintf("%d KiB, requests", limit>>10), func(t *testing.T) {
			sizesOn(t, limit, func(_ *testing.T, h *sizesHouse) {
				for _, size := range append(slices.Clone(sizes), 136<<10) { // two of these are more than 256 KiB take
					h.requests(sizeCase{Kind: "requests", Size: size, Count: 1})
					h.reports(sizeCase{Kind: "reports", Size: size, Count: 1})
				}
			})
		})
	}
}

// all decides every case of a kind, by a decider in Go and by one in JSON.
func (h *sizesHouse) all(kind string, event schemas.EventType, many bool, sizes, counts []int, most int) {
	h.t.Helper()
	for _, size := range sizes {
		for _, count := range counts {
			c := sizeCase{Kind: kind, Size: size, Count: count}
			if count > 1 && !many || size*count > most {
				continue
			}
			h.decides("go", c, event)
			body, err := schemas.MarshalJSON(&schemas.DecisionReply{Decisions: c.decided()})
			if err != nil {
				h.t.Fatal(err)
			}
			if kind != "context" && len(body)+1024 <= int(h.nc.MaxPayload()) {
				h.decides("json", c, event)
			}
		}
	}
}
