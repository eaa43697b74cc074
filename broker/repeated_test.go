package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/schemas"
)

// Two tries of one request to terminate wait in the inbox, and between them the start of the next run. The second try finds
// that run, and is answered as the first: it is what ended the run that both mean. Another request is refused.
func TestTerminateRepeatedLaterTheNextStart(t *testing.T) { // P-5
	virtually(t, 1, func(t *testing.T, f *fleet) {
		first := f.node("a", nil)
		f.start(startO)
		first.stop()
		answers := make(map[string]chan schemas.AckResponse)
		terminate := func(try, requestID string) {
			inbox := f.nc.NewInbox()
			sub, err := f.nc.SubscribeSync(inbox)
			if err != nil {
				t.Fatal(err)
			}
			got := make(chan schemas.AckResponse, 1)
			answers[try] = got
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				m, err := sub.NextMsgWithContext(ctx)
				if err != nil {
					close(got)
					return
				}
				var a schemas.AckResponse
				_ = json.Unmarshal(m.Data, &a) // an answer that cannot be read is the zero one, which is no run's
				got <- a
			}()
			f.publish(ns.In(0, "o", "terminate"), fmt.Sprintf(`{"workflowId":"o","run":"r1","requestId":%q,"replyTo":%q,"content":"application/json"}`, requestID, inbox))
		}
		terminate("first", "t1")
		f.publish(ns.In(0, "o", "start"), `{"workflowId":"o","type":"order","run":"r2","requestId":"q2"}`)
		terminate("second", "t1")
		terminate("other", "t2")
		f.node("b", nil)
		for _, try := range []string{"first", "second"} {
			if a, ok := <-answers[try]; !ok || a.Error != nil || a.Run != "r1" {
				t.Errorf("%s try: got %+v, want that run r1 was terminated", try, a)
			}
		}
		if a, ok := <-answers["other"]; !ok || a.Error == nil || a.Error.Code != schemas.CodeClosed {
			t.Errorf("another request: got %+v, want that run r1 is closed", a)
		}
		if got := f.result0("o"); got != "open" {
			t.Errorf("run r2 is %s, want it open", got)
		}
	})
}

// A request for a chain is carried out by its second run, which continues as new, as the third one does. Repeated with the
// first run's name, as a client does that got no answer, it is answered and not carried out by the fourth.
func TestRequestForAChainIsCarriedOutOnce(t *testing.T) { // P-5
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", renewing)
		f.start(startO)
		poke := func(name string) {
			if a := f.api("signal", fmt.Sprintf(`{"workflowId":"o","name":%q}`, name)); a["error"] != nil {
				t.Fatalf("signal %s: got %v", name, a)
			}
		}
		cancel := func() {
			t.Helper()
			if a := f.api("cancel", `{"workflowId":"o","run":"r1","chain":true,"requestId":"c1"}`); a["error"] != nil {
				t.Fatalf("got %v", a)
			}
			synctest.Wait()
		}
		poke("once")
		synctest.Wait()
		cancel()
		poke("again")
		synctest.Wait()
		cancel()
		if runs, n := f.runsOf("o"), f.count("o", schemas.EventWorkflowCancelRequested); len(runs) != 4 || n != 1 {
			t.Errorf("got %d runs with %d cancel requests, want 4 and 1", len(runs), n)
		}
		poke("end")
		f.completes("o")
	})
}
