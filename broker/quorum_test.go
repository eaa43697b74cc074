package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/schemas"
)

// While the quorum is lost requests are refused at once, those that wait for an answer already among them; when it is back
// all goes on.
func TestNoQuorum(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var lost atomic.Bool
		f.node("a", nil, func(o *broker.Options) {
			o.Quorum = func() error {
				if lost.Load() {
					return errors.New("no quorum: this node sees 1 of 3 servers")
				}
				return nil
			}
		})
		f.decider("order", signaled)
		f.start(`{"workflowId":"o","type":"order"}`)
		type answer struct {
			body []byte
			took time.Duration
		}
		waits := make(chan answer, 1)
		began := time.Now()
		go func() {
			m, err := f.nc.Request(ns.API("result"), []byte(`{"workflowId":"o","wait":"30s"}`), time.Minute)
			if err != nil {
				t.Error(err)
				waits <- answer{}
				return
			}
			waits <- answer{m.Data, time.Since(began)}
		}()
		time.Sleep(time.Second)
		lost.Store(true)
		refused := func(body []byte) bool {
			var a schemas.AckResponse
			return json.Unmarshal(body, &a) == nil && a.Error != nil && a.Error.Code == schemas.CodeUnavailable && a.Error.Final &&
				strings.Contains(a.Error.Message, "sees 1 of 3 servers")
		}
		if a := <-waits; !refused(a.body) || a.took > 1500*time.Millisecond {
			t.Fatalf("the one that waited: got %s after %v, want a refusal at once", a.body, a.took)
		}
		for _, verb := range []string{"start", "signal", "describe", "list"} {
			began := time.Now()
			if body := f.request(ns.API(verb), `{"workflowId":"o","type":"order","name":"go"}`); !refused(body) || time.Since(began) > 100*time.Millisecond {
				t.Fatalf("%s: got %s after %v, want a refusal at once", verb, body, time.Since(began))
			}
		}
		lost.Store(false) // a request may come from the others before the cluster has been looked at again
		if a := f.api("signal", `{"workflowId":"o","name":"go"}`); a["error"] != nil {
			t.Fatalf("got %v, want the signal taken", a)
		}
		f.result("o")
	})
}

// A node that has no broker yet refuses for want of a quorum, and keeps quiet while there is one.
func TestRefuseRequests(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var lost atomic.Bool
		lost.Store(true)
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			ended <- broker.RefuseRequests(ctx, f.post, func() error {
				if lost.Load() {
					return errors.New("no quorum")
				}
				return nil
			})
		}()
		time.Sleep(time.Second)
		if body := f.request("drover.anything.api.start", `{}`); !strings.Contains(string(body), `"final":true`) {
			t.Fatalf("got %s, want a final refusal", body)
		}
		before := f.streamEnds()
		f.ask("drover.anything.api.start", "drover.default.signal.o.go", `{}`)
		if after := f.streamEnds(); after != before {
			t.Fatalf("the refusal was stored as a signal: the streams ended at %s, and now at %s", before, after)
		}
		lost.Store(false)
		if body := f.tryRequest("drover.anything.api.start", `{}`); body != nil {
			t.Fatalf("got %s, want no answer", body)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	})
}

// A signal was stored and ended its run, and its answer was lost: the repeat is told that it is stored, not that it came
// too late.
func TestSignalThatEndedItsRunRepeated(t *testing.T) { // P-5
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", signaled)
		first := f.start(`{"workflowId":"o","type":"order"}`)
		const body = `{"workflowId":"o","name":"go","requestId":"q1"}`
		for i := range 2 {
			if a := f.api("signal", body); a["error"] != nil || a["run"] != first["run"] {
				t.Fatalf("answer %d is %v, want it stored for run %v", i, a, first["run"])
			}
			f.result("o")
		}
		if a := f.api("signal", `{"workflowId":"o","name":"go","requestId":"q2"}`); code(a) != "closed" {
			t.Fatalf("got %v, want that another signal finds the run closed", a)
		}
		if n := f.count("o", schemas.EventSignal); n != 1 {
			t.Fatalf("got %d signals, want 1", n)
		}
	})
}
