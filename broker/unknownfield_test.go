package broker_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/ops/permissions"
	"github.com/droverhq/drover/schemas"
)

// E6: a decider whose reply has a field that there is not has failed, and why says which. With the header
// that says so the field is passed over, as in msgpack.
func TestMisspeltDecision(t *testing.T) {
	for _, lenient := range []bool{false, true} {
		virtually(t, 1, func(t *testing.T, f *fleet) {
			f.node("a", nil)
			answers(t, f, "order", lenient, func(task *decisionTask) string {
				if task.has("TimerExpired") {
					return complete
				}
				return `[{"type":"ScheduleTimer","attributes":{"timerId":"t","startToFireTimeot":"1h"}}]`
			})
			f.start(startO)
			if lenient {
				f.completes("o")
				return
			}
			f.await("o", schemas.EventDeciderFailed)
			why, _ := f.api("why", `{"workflowId":"o"}`)["because"].(string)
			if !strings.Contains(why, `did you mean "startToFireTimeout"`) {
				t.Errorf("why says %q, want the field that was meant", why)
			}
			for _, e := range f.events("o") {
				if e.Type() == schemas.EventTimerScheduled {
					t.Error("a timer was set by a decision with an unknown field")
				}
			}
			if got := f.dead(); len(got) == 0 || got[0] != "undecodable" {
				t.Errorf("dead letters %v, want the reply", got)
			}
		})
	}
}

// answers is fleet.decider with headers.
func answers(t *testing.T, f *fleet, typ string, lenient bool, decide func(*decisionTask) string) {
	t.Helper()
	_, err := f.nc.Subscribe(ns.Decide(typ), func(m *nats.Msg) {
		var task decisionTask
		if err := json.Unmarshal(m.Data, &task); err != nil {
			t.Error(err)
			return
		}
		a := nats.NewMsg(m.Reply)
		if lenient {
			a.Header.Set(schemas.LenientHeader, "1")
		}
		a.Data = []byte(`{"token":"` + task.Token + `","decisions":` + decide(&task) + `}`)
		_ = m.RespondMsg(a) // the test may be over
	})
	if err != nil {
		t.Fatal(err)
	}
	f.flush()
}

// E6: the same for outcomes, on both ways, and for heartbeats. A refused outcome is told of or kept, and
// the right one counts.
func TestMisspeltOutcome(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", one(""))
		f.start(startO)
		k := f.pull()
		wrong := `{"token":"` + k.Token + `","kind":"success","reslut":"done"}`
		f.publish(k.Report, wrong)
		letters := f.letters()
		if len(letters) != 1 || letters[0].Reason != "undecodable" || !strings.Contains(letters[0].Details, `did you mean "result"`) {
			t.Fatalf("dead letters %+v, want the outcome with the field that was meant", letters)
		}
		ask := func(to string, h nats.Header, body string) string {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			m, err := f.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: to, Header: h, Data: []byte(body)})
			if err != nil {
				t.Fatal(err)
			}
			return string(m.Data)
		}
		if got := ask(direct(k.Beat), nil, wrong); !strings.Contains(got, `did you mean \"result\"`) {
			t.Errorf("the owner answers the outcome %s", got)
		}
		beat := `{"token":"` + k.Token + `","detials":1}`
		if got := ask(k.Beat, nil, beat); !strings.Contains(got, `did you mean \"details\"`) {
			t.Errorf("the owner answers the heartbeat %s", got)
		}
		if got := ask(k.Beat, nats.Header{schemas.LenientHeader: {"1"}}, beat); strings.Contains(got, "did you mean") {
			t.Errorf("the owner answers the lenient heartbeat %s", got)
		}
		if got := f.types("o"); len(got) != 5 {
			t.Fatalf("history %v, want nothing after the scheduled activity", got)
		}
		lenient := nats.Header{schemas.LenientHeader: {"1"}}
		if got := ask(direct(k.Beat), lenient, wrong); !strings.Contains(got, `"sequence":`) {
			t.Errorf("the owner answers the lenient outcome %s", got)
		}
		f.wantTypes("o", oneActivity...)
	})
}

// E6: every verb of the API refuses a field that it does not have, in words, before anything is done.
func TestMisspeltRequests(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", one(""))
		f.start(startO)
		f.pull()
		before := f.standing()
		for _, verb := range permissions.Verbs(permissions.Operator) {
			if slices.Contains(permissions.OfOps(), verb) {
				continue
			}
			var a schemas.AckResponse
			f.apiInto(&a, verb, `{"workflowId":"o","zzz":1}`)
			if a.Error == nil || a.Error.Code != schemas.CodeInvalid || !strings.Contains(a.Error.Message, "unknown field") {
				t.Errorf("%s answers %+v, want a refusal that names the field", verb, a.Error)
			}
		}
		var a schemas.AckResponse
		if f.apiInto(&a, "start", `{"type":"order","imput":1}`); a.Error == nil || a.Error.Field != "imput" ||
			!strings.Contains(a.Error.Message, `did you mean "input"`) || !strings.Contains(a.Error.Hint, schemas.LenientHeader) {
			t.Errorf("start answers %+v", a.Error)
		}
		if after := f.standing(); after != before {
			t.Errorf("something was done:\n%s\n%s", before, after)
		}
	})
}
