package broker_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/schemas"
)

// fullWays are the ways in which there may be no room. Each limits a fleet to some bytes, and takes
// the limit away when it is 0.
var fullWays = map[string]struct {
	options func(*fleet, *atomic.Int64) func(*broker.Options)
	limit   func(f *fleet, bytes int64)
}{
	"server": {
		options: func(f *fleet, limit *atomic.Int64) func(*broker.Options) {
			return func(o *broker.Options) {
				o.Quota = func() (int64, int64) {
					bytes, _ := f.server.Load().Room()
					return bytes, limit.Load()
				}
			}
		},
	},
	"account": {
		limit: func(f *fleet, bytes int64) { f.accountOf(embeddedtest.Limits{MaxMemory: cmp.Or(bytes, -1)}) },
	},
	"namespace": {
		limit: func(f *fleet, bytes int64) {
			for _, stream := range []string{ns.StreamIn(0), ns.StreamSignals(), ns.StreamHistory(0), ns.StreamPayloads()} {
				f.streamOf(stream, bytes)
			}
		},
	},
	"partition": {
		limit: func(f *fleet, bytes int64) { f.streamOf(ns.StreamHistory(0), bytes) },
	},
	"object store": {
		limit: func(f *fleet, bytes int64) { f.streamOf(ns.StreamPayloads(), bytes) },
	},
}

// streamOf gives a stream a limit of bytes; 0 takes it away.
func (f *fleet) streamOf(stream string, bytes int64) {
	f.t.Helper()
	s, err := f.js.Stream(f.t.Context(), stream)
	if err != nil {
		f.t.Fatal(err)
	}
	config := s.CachedInfo().Config
	config.MaxBytes = cmp.Or(bytes, -1)
	if _, err := f.js.UpdateStream(f.t.Context(), config); err != nil {
		f.t.Fatal(err)
	}
}

// fullEnds are the ends of a process. Each leaves another one that serves.
var fullEnds = map[string]func(f *fleet, a *node, options ...func(*broker.Options)){
	"restart": func(f *fleet, a *node, options ...func(*broker.Options)) {
		a.stop()
		f.node("a", nil, options...)
	},
	"kill": func(f *fleet, a *node, options ...func(*broker.Options)) {
		a.kill()
		f.node("b", nil, options...)
	},
	"planned stop": func(f *fleet, a *node, options ...func(*broker.Options)) {
		f.node("b", nil, options...)
		time.Sleep(time.Second)
		a.stop()
	},
}

// A start that was answered with a refusal never begins, whatever the size and the way of its
// input, and takes no bytes. Beside a full store what runs is read, canceled and terminated, and
// what was accepted is there (R1, R2). How the owner ends makes no difference to where there is no
// room: every end is tried with one limit, and a kill with the others.
func TestRefusedForQuotaIsFinal(t *testing.T) {
	for full, way := range fullWays {
		for end, ended := range fullEnds {
			if full != "server" && end != "kill" {
				continue
			}
			t.Run(full+", "+end, func(t *testing.T) {
				virtually(t, 1, func(t *testing.T, f *fleet) {
					const most = 4 << 20
					limit := &atomic.Int64{}
					var options []func(*broker.Options)
					if way.options != nil {
						options = append(options, way.options(f, limit))
					}
					limited := func(bytes int64) {
						limit.Store(bytes)
						if way.limit != nil {
							way.limit(f, bytes)
						}
					}
					a := f.node("a", nil, options...)
					f.start(`{"workflowId":"first","type":"order","input":` + string(large(300<<10)) + `}`)
					limited(most)
					time.Sleep(time.Minute)
					accepted, refused := f.fill()
					f.servesWhileFull(accepted)
					ended(f, a, options...)
					limited(0)
					time.Sleep(2 * time.Minute)
					for _, id := range refused {
						if got := f.result0(id); got != "" {
							t.Errorf("%s was refused, and is %s", id, got)
						}
					}
					for _, id := range accepted[2:] {
						if got := f.result0(id); got != "open" {
							t.Errorf("%s was accepted, and is %q", id, got)
						}
					}
					if a := f.start(`{"workflowId":"last","type":"order","input":` + string(large(300<<10)) + `}`); a["error"] != nil {
						t.Errorf("with room again: %v", a)
					}
				})
			})
		}
	}
}

// fill starts runs of type order with inputs of many sizes, inline and uploaded, until many are
// refused, and returns their ids. It looks whether those that are refused take any bytes.
func (f *fleet) fill() (accepted, refused []string) {
	f.t.Helper()
	for i := 0; len(refused) < 12; i++ {
		if i == 100 {
			f.t.Fatalf("%d starts were accepted: there is no limit", len(accepted))
		}
		id, before := fmt.Sprintf("w%d", i), f.bytesStored()
		a := f.startWith(id, large([]int{90 << 10, 250 << 10, 400 << 10, 900 << 10}[i%4]), i%3 == 0)
		time.Sleep(2 * time.Second)
		e, _ := a["error"].(map[string]any)
		if e == nil {
			accepted = append(accepted, id)
			continue
		}
		if e["code"] != string(schemas.CodeLimit) || e["hint"] == "" {
			f.t.Fatalf("%s: got %v, want the limit and the way out", id, a)
		}
		refused = append(refused, id)
		if after := f.bytesStored(); after > before+(64<<10) {
			f.t.Errorf("%s was refused, and took %d bytes", id, after-before)
		}
		if got := f.result0(id); got != "" {
			f.t.Errorf("%s was refused, and is %s", id, got)
		}
	}
	if len(accepted) < 2 {
		f.t.Fatalf("got %d accepted starts", len(accepted))
	}
	return accepted, refused
}

// startWith starts a run with an input, which is uploaded before as Go clients do, or comes with
// the start.
func (f *fleet) startWith(id string, input schemas.Payload, upload bool) map[string]any {
	f.t.Helper()
	if upload {
		p, err := payloads.NewClient(f.post, ns, time.Minute).For(id, "r-"+id).Spill(f.t.Context(), input)
		if refused, ok := errors.AsType[*schemas.Error](err); ok {
			return map[string]any{"error": map[string]any{"code": string(refused.Code), "hint": refused.Hint}}
		}
		if err != nil {
			f.t.Fatal(err)
		}
		input = p
	}
	body, err := json.Marshal(&schemas.StartRequest{WorkflowID: id, Run: "r-" + id, Type: "order", Input: input})
	if err != nil {
		f.t.Fatal(err)
	}
	return f.start(string(body))
}

// bytesStored is how many bytes the namespace takes.
func (f *fleet) bytesStored() (bytes uint64) {
	f.t.Helper()
	l := f.js.ListStreams(f.t.Context())
	for i := range l.Info() {
		if !strings.HasPrefix(i.Config.Name, "KV_") {
			bytes += i.State.Bytes
		}
	}
	if l.Err() != nil {
		f.t.Fatal(l.Err())
	}
	return bytes
}

// servesWhileFull reads, cancels and terminates two of the accepted runs.
func (f *fleet) servesWhileFull(accepted []string) {
	f.t.Helper()
	for verb, body := range map[string]string{
		"list": `{}`, "describe": `{"workflowId":"first"}`, "why": `{"workflowId":"first"}`, "result": `{"workflowId":"first"}`,
		"cancel": `{"workflowId":"` + accepted[0] + `"}`, "terminate": `{"workflowId":"` + accepted[1] + `"}`,
	} {
		if a := f.api(verb, body); a["error"] != nil {
			f.t.Errorf("%s beside a full store: %v", verb, a)
		}
	}
	started, _ := f.events("first")[0].Attributes.(*schemas.WorkflowStarted)
	f.wantRef(started.Input, large(300<<10))
	if got := f.result(accepted[1]); got != "terminated" {
		f.t.Errorf("%s is %s, want terminated", accepted[1], got)
	}
	f.await(accepted[0], schemas.EventWorkflowCancelRequested)
}

// What was stored for a start that is refused, for whatever reason, goes at once; what an accepted
// one names stays, whoever else names it (R2).
func TestRefusedStartLeavesNothingStored(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		input, signal := large(300<<10), large(400<<10)
		for i, upload := range []bool{false, true} {
			id := fmt.Sprintf("w%d", i)
			for range 2 { // the second is a repeat
				if a := f.startWith(id, input, upload); a["error"] != nil {
					t.Fatal(a)
				}
			}
		}
		kept := f.objects()
		if len(kept) < 2 {
			t.Fatalf("got objects %v", kept)
		}
		refuse := func(what string, q *schemas.StartRequest) {
			t.Helper()
			body, err := json.Marshal(q)
			if err != nil {
				t.Fatal(err)
			}
			e, _ := f.start(string(body))["error"].(map[string]any)
			if e["code"] != string(schemas.CodeAlreadyStarted) {
				t.Errorf("%s: got %v, want a refusal", what, e)
			}
			time.Sleep(time.Second)
			if got := f.objects(); fmt.Sprint(got) != fmt.Sprint(kept) {
				t.Errorf("%s: got objects %v, want %v", what, got, kept)
			}
		}
		q := &schemas.StartRequest{WorkflowID: "w0", Run: "other", Type: "order", Input: input}
		refuse("inline", q)
		uploaded, err := payloads.NewClient(f.post, ns, time.Minute).For("w0", "other").Spill(t.Context(), input)
		if err != nil {
			t.Fatal(err)
		}
		q.Input = uploaded
		refuse("uploaded", q)
		started, _ := f.events("w1")[0].Attributes.(*schemas.WorkflowStarted)
		q.Input = started.Input
		refuse("another's", q)

		before := len(f.objects())
		a := f.api("start", `{"workflowId":"w0","type":"order","input":`+string(input)+`,"signal":{"name":"s","requestId":"q1","input":`+string(signal)+`}}`)
		if a["error"] != nil || a["run"] != "r-w0" {
			t.Errorf("a start that signals: %v", a)
		}
		if got := len(f.objects()); got != before+1 {
			t.Errorf("a start that signals stored %d objects, want that of the signal", got-before)
		}
		f.wantSmall()
	})
}

// A broker of a former version puts a start that is large into the inbox, and waits for the answer
// of whoever reads it.
func TestLargeStartInTheInboxIsAnswered(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		input := large(300 << 10)
		to := f.nc.NewInbox()
		sub, err := f.nc.SubscribeSync(to)
		if err != nil {
			t.Fatal(err)
		}
		f.publish(ns.In(0, "w", "start"), `{"workflowId":"w","run":"r","type":"order","replyTo":"`+to+`","input":`+string(input)+`}`)
		m, err := sub.NextMsg(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		var a schemas.StartResponse
		if err := json.Unmarshal(m.Data, &a); err != nil || a.Run != "r" || !a.Started {
			t.Fatalf("got %s, %v", m.Data, err)
		}
		started, _ := f.events("w")[0].Attributes.(*schemas.WorkflowStarted)
		f.wantRef(started.Input, input)
	})
}
