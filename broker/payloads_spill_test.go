package broker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker"
	toolarge "github.com/droverhq/drover/broker/partition/large"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// What comes in whole, from other languages, goes to the store before a record names it.
func TestLargePayloadsOfStrangers(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		input, signal, result := large(400<<10), large(500<<10), large(900<<10)
		f.decider("order", func(task *decisionTask) string {
			switch {
			case task.has("ActivitySuccess"):
				return complete
			case task.has("WorkflowStarted"):
				return "[" + scheduleActivity("a1", "") + "]"
			}
			return "[]"
		})
		f.start(`{"workflowId":"w","type":"order","input":` + string(input) + `}`)
		f.publish(ns.Signal("w", "news"), string(signal))
		f.await("w", schemas.EventSignal) // the report closes the run
		f.pull().report("success", `,"result":`+string(result))
		f.completes("w")
		for _, e := range f.events("w") {
			switch a := e.Attributes.(type) {
			case *schemas.WorkflowStarted:
				f.wantRef(a.Input, input)
			case *schemas.Signal:
				if ref := f.wantRef(a.Input, signal); !strings.HasPrefix(ref.Object, "signals-0-1-") {
					t.Errorf("got object %s, want it named by its place", ref.Object)
				} else if m, err := f.post.GetSeq(t.Context(), ns.StreamSignals(), 1); err != nil || toolarge.SpillNames(0, true, *m)[0] != ref.Object {
					t.Errorf("the signal does not stand for object %s: %v, %v", ref.Object, m, err)
				}
			case *schemas.ActivitySuccess:
				f.wantRef(a.Result, result)
			}
		}
		if got := f.objects(); len(got) != 3 {
			t.Fatalf("got objects %v, want 3", got)
		}
		if got := f.dead(); len(got) != 0 {
			t.Fatalf("got dead letters %v", got)
		}
		f.wantSmall()
	})
}

// In JSON some bytes take six, and a message that the server took may be one that it cannot send on: such a payload is a reference
// below the threshold too.
func TestPayloadsThatJSONMakesTooLarge(t *testing.T) {
	for name, each := range map[string]string{"zeros, which are text": "\x00\x00\x00\x01", "markup": "<>&<"} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				signal := schemas.Payload(strings.Repeat(each, schemas.PayloadThreshold/4))
				f.decider("order", signaled)
				f.start(`{"workflowId":"w","type":"order"}`)
				f.await("w", schemas.EventDeciderCompleted)
				f.publish(ns.Signal("w", "news"), string(signal))
				time.Sleep(time.Minute)
				if got := f.recorded("w"); got[len(got)-1].Type() != schemas.EventWorkflowSuccess {
					t.Fatalf("the run stands at %s: its decider has not seen the signal", got[len(got)-1].Type())
				}
				for _, e := range f.events("w") {
					if a, ok := e.Attributes.(*schemas.Signal); ok {
						f.wantRef(a.Input, signal)
					}
				}
				f.wantSmall()
			})
		})
	}
}

// A broker dies between the object and the record that names it. The next one reads the message again and names the same
// object.
func TestTakeOverNamesTheSameObject(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("early", nil)
		f.decider("order", signaled)
		f.start(`{"workflowId":"w","type":"order"}`)
		f.await("w", schemas.EventDeciderCompleted)
		f.nodes[0].stop()
		stored := &seen{}
		a := f.node("a", func(subj string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, "$O.") {
				stored.add(subj)
			}
			if strings.HasPrefix(subj, ns.History(0, "w", "")[:len(ns.History(0, "w", ""))-1]) {
				return cutwire.CutBefore
			}
			return cutwire.Pass
		})
		signal := large(500 << 10)
		f.publish(ns.Signal("w", "news"), string(signal))
		a.waitKilled()
		before := f.objects()
		if len(before) != 1 || len(stored.take()) == 0 {
			t.Fatalf("got %v, want the object there before the record", before)
		}
		left := f.messages()
		f.node("b", nil)
		f.completes("w")
		for _, e := range f.events("w") {
			if s, ok := e.Attributes.(*schemas.Signal); ok {
				if ref := f.wantRef(s.Input, signal); ref.Object != before[0] {
					t.Fatalf("got object %s, want %s", ref.Object, before[0])
				}
			}
		}
		if got := f.messages(); got != left {
			t.Fatalf("got %d messages in the store, want %d: it was written again", got, left)
		}
		f.wantSmall()
	})
}

// While the store refuses, the log waits; nothing is lost or skipped.
func TestLogWaitsForTheStore(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", func(task *decisionTask) string {
			if task.has("Signal") && len(task.Events) > 0 {
				for _, e := range task.Events {
					if e.Attributes["signalName"] == "last" {
						return complete
					}
				}
			}
			return "[]"
		})
		f.start(`{"workflowId":"w","type":"order"}`)
		f.await("w", schemas.EventDeciderCompleted)
		// A stream of somebody else on the store's subjects: the store cannot be made.
		foreign, err := f.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "foreign", Subjects: []string{"$O." + ns.StorePayloads() + ".C.*"}, Storage: jetstream.MemoryStorage})
		if err != nil {
			t.Fatal(err)
		}
		signal := large(500 << 10)
		f.publish(ns.Signal("w", "first"), string(signal))
		f.publish(ns.Signal("w", "last"), "1")
		time.Sleep(10 * time.Minute)
		if got := f.result0("w"); got != "open" {
			t.Fatalf("got %s, want it to wait", got)
		}
		if err := f.js.DeleteStream(t.Context(), foreign.CachedInfo().Config.Name); err != nil {
			t.Fatal(err)
		}
		f.completes("w")
		var names []string
		for _, e := range f.events("w") {
			if s, ok := e.Attributes.(*schemas.Signal); ok {
				names = append(names, s.SignalName)
			}
		}
		if got := strings.Join(names, " "); got != "first last" {
			t.Fatalf("got signals %s, want them in order", got)
		}
	})
}

func TestDownloadRefusals(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.api("list", `{}`)
		for body, want := range map[string]string{
			`{"object":"none"}`:                     "not_found object",
			`{"object":""}`:                         "invalid_argument object",
			`{"object":"none","cursor":"x"}`:        "invalid_argument cursor",
			`{"object":"none","cursor":"a.b.-1"}`:   "invalid_argument cursor",
			`{"object":"none","cursor":"*.1.1"}`:    "not_found object",
			`{"object":"none","cursor":"a.zz.5.6"}`: "invalid_argument cursor",
		} {
			refused, _ := f.api("download", body)["error"].(map[string]any)
			if got := fmt.Sprint(refused["code"], " ", refused["field"]); got != want {
				t.Errorf("%s: got %s, want %s", body, got, want)
			}
		}
		content := large(300 << 10)
		ref, err := payloads.NewClient(f.post, ns, time.Minute).Upload(t.Context(), content)
		if err != nil {
			t.Fatal(err)
		}
		f.wantNoReference(ref)
		ref.Digest = digestOf(nil)
		if _, err := payloads.NewClient(f.post, ns, time.Minute).Download(t.Context(), ref); !errors.Is(err, payloads.ErrDamaged) {
			t.Fatalf("got %v, want ErrDamaged", err)
		}
	})
}

// wantNoReference tries requests that name what is not there, beside one object that is: no decider could read what they ask for.
func (f *fleet) wantNoReference(there *schemas.PayloadRef) {
	f.t.Helper()
	good := fmt.Sprintf(`{"$ref":{"object":%q,"size":%d,"digest":%q}}`, there.Object, there.Size, there.Digest)
	none := strings.Replace(good, there.Object, "none", 1)
	odd := strings.Replace(good, there.Object, "odd", 1) // as a link of another NATS client, which has no digest
	f.publish(ns.PayloadInfo("odd"), `{"name":"odd","bucket":"b","nuid":"x","options":{"link":{"bucket":"other"}}}`)
	f.publish(ns.PayloadInfo("text"), "no JSON")
	f.start(startO)
	for _, tc := range []struct{ verb, body, want string }{
		{"signal", `{"workflowId":"o","name":"s","input":` + none + `}`, "invalid_argument input"},
		{"signal", `{"workflowId":"o","name":"s","input":` + strings.Replace(good, `"size":3`, `"size":4`, 1) + `}`, "invalid_argument input"},
		{"signal", `{"workflowId":"o","name":"s","input":` + odd + `}`, "invalid_argument input"},
		{"signal", `{"workflowId":"o","name":"s","input":` + strings.Replace(good, there.Object, "text", 1) + `}`, "invalid_argument input"},
		{"signal", `{"workflowId":"o","name":"s","input":` + good + `}`, "<nil> <nil>"},
		{"start", `{"workflowId":"o2","type":"order","input":` + none + `}`, "invalid_argument input"},
		{"start", `{"workflowId":"o","type":"order","input":` + good + `,"signal":{"name":"s","input":` + none + `}}`, "invalid_argument signal.input"},
		{"start", `{"workflowId":"o","type":"order","input":` + none + `,"signal":{"name":"s","input":` + good + `}}`, "invalid_argument input"},
		{"terminate", `{"workflowId":"o","details":` + none + `}`, "invalid_argument details"},
	} {
		refused, _ := f.api(tc.verb, tc.body)["error"].(map[string]any)
		if got := fmt.Sprint(refused["code"], " ", refused["field"]); got != tc.want {
			f.t.Errorf("%s %s: got %s, want %s", tc.verb, tc.body, got, tc.want)
		}
	}
	if letters := f.dead(); len(letters) != 0 {
		f.t.Errorf("got dead letters %v, want none", letters)
	}
	for _, object := range []string{"odd", "text"} { // they must not keep what comes after them in their log
		f.publish(ns.Signal("o", "s"), string(schemas.RefPayload(&schemas.PayloadRef{Object: object, Size: there.Size, Digest: there.Digest})))
	}
	f.publish(ns.Signal("o", "s"), "1")
	time.Sleep(5 * time.Second)
	if letters := f.dead(); len(letters) != 2 {
		f.t.Errorf("got dead letters %v, want the signals that name what is no payload", letters)
	}
	if types := strings.Join(f.types("o"), " "); strings.Count(types, "Signal") != 2 || strings.Contains(types, "Terminated") {
		f.t.Errorf("got %s, want two signals", types)
	}
}

// The broker crashes between the upload and the start that names it.
func TestReferenceOutlivesTheBroker(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		a := f.node("a", nil)
		f.api("list", `{}`)
		content := large(300 << 10)
		p, err := payloads.NewClient(f.post, ns, time.Minute).Spill(t.Context(), content)
		if err != nil {
			t.Fatal(err)
		}
		a.kill()
		f.node("b", nil)
		input, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		f.decider("order", func(*decisionTask) string { return complete })
		f.start(`{"workflowId":"w","type":"order","input":` + string(input) + `}`)
		f.completes("w")
		started, _ := f.events("w")[0].Attributes.(*schemas.WorkflowStarted)
		f.wantRef(started.Input, content)
		f.wantSmall()
	})
}

func TestMaxObject(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil, func(o *broker.Options) { o.MaxObject = 300 << 10 })
		f.api("list", `{}`)
		c := payloads.NewClient(f.post, ns, time.Minute)
		if _, err := c.Spill(t.Context(), large(300<<10)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Spill(t.Context(), large(300<<10+1)); !errors.Is(err, &schemas.Error{Code: schemas.CodeTooLarge}) {
			t.Fatalf("got %v, want it refused", err)
		}
	})
}

// A full store refuses with the way out, and keeps nothing of what it refused.
func TestUploadIntoAFullStore(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		if _, err := topology.Ensure(t.Context(), f.post, topology.Options{Memory: true, MaxBytes: 16 << 20}); err != nil {
			t.Fatal(err)
		}
		f.node("a", nil)
		f.api("list", `{}`)
		c := payloads.NewClient(f.post, ns, time.Minute)
		for range 3 {
			if _, err := c.Upload(t.Context(), large(5<<20)); err != nil {
				t.Fatal(err)
			}
		}
		before := f.messages()
		_, err := c.Upload(t.Context(), large(5<<20))
		refused, ok := errors.AsType[*schemas.Error](err)
		if !ok || refused.Code != schemas.CodeLimit || !strings.Contains(refused.Hint, "--max-bytes") {
			t.Fatalf("got %v, want %s and the way out", err, schemas.CodeLimit)
		}
		if got := f.messages(); got != before {
			t.Fatalf("got %d messages, want %d", got, before)
		}
	})
}
