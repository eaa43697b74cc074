package broker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

func TestTypeKeys(t *testing.T) {
	seen := map[string]schemas.TypeRequest{}
	for _, tc := range []struct {
		q          schemas.TypeRequest
		key, words string
	}{
		{schemas.TypeRequest{Kind: "workflow", Name: "order", Version: "1"}, "workflow.order.1", "workflow order --version 1"},
		{schemas.TypeRequest{Kind: "workflow", Name: "order"}, "workflow.order.=", "workflow order"},
		{schemas.TypeRequest{Kind: "workflow", Name: "order", Version: "="}, "workflow.order.=3D", "workflow order --version '='"},
		{schemas.TypeRequest{Kind: "activity", Name: "order", Version: "1"}, "activity.order.1", "activity order --version 1"},
		{schemas.TypeRequest{Kind: "workflow", Name: "order.1"}, "workflow.order=2E1.=", "workflow 'order.1'"},
		{schemas.TypeRequest{Kind: "workflow", Name: "a/b c>*", Version: "1.2"}, "workflow.a=2Fb=20c=3E=2A.1=2E2", "workflow 'a/b c>*' --version '1.2'"},
		{schemas.TypeRequest{Kind: "workflow", Name: "a=2Fb"}, "workflow.a=3D2Fb.=", "workflow 'a=2Fb'"},
		{schemas.TypeRequest{Kind: "workflow", Name: "é'"}, "workflow.=C3=A9=27.=", `workflow 'é'\'''`},
	} {
		if got := tc.q.Key(); got != tc.key {
			t.Errorf("%+v: got key %q, want %q", tc.q, got, tc.key)
		}
		if got := tc.q.String(); got != tc.words {
			t.Errorf("%+v: got %q, want %q", tc.q, got, tc.words)
		}
		if other, ok := seen[tc.key]; ok {
			t.Errorf("%+v and %+v share a key", tc.q, other)
		}
		seen[tc.key] = tc.q
	}
}

func TestTypeDiffers(t *testing.T) {
	workflow := func(d schemas.WorkflowTypeDefaults) *schemas.TypeRegisterRequest {
		return &schemas.TypeRegisterRequest{V: 1, Kind: "workflow", Name: "o", Version: "1", Workflow: &d}
	}
	activity := func(r *schemas.RetryPolicy) *schemas.TypeRegisterRequest {
		return &schemas.TypeRegisterRequest{Kind: "activity", Name: "o", Activity: &schemas.ActivityTypeDefaults{Retry: r}}
	}
	bare := &schemas.TypeRegisterRequest{Kind: "workflow", Name: "o", Version: "1"}
	for _, tc := range []struct {
		have, want *schemas.TypeRegisterRequest
		field      string
	}{
		{bare, bare, ""},
		{bare, workflow(schemas.WorkflowTypeDefaults{}), ""},
		{workflow(schemas.WorkflowTypeDefaults{ActivityDefaults: &schemas.ActivityDefaults{}}), bare, ""},
		{bare, workflow(schemas.WorkflowTypeDefaults{TaskPriority: 1}), "workflow.taskPriority"},
		{workflow(schemas.WorkflowTypeDefaults{TaskPriority: 1}), bare, "workflow.taskPriority"},
		{bare, &schemas.TypeRegisterRequest{Kind: "workflow", Name: "o", Version: "1", Description: "<nil>"}, "description"},
		{
			workflow(schemas.WorkflowTypeDefaults{ExecutionStartToCloseTimeout: 1<<60 + 1}),
			workflow(schemas.WorkflowTypeDefaults{ExecutionStartToCloseTimeout: 1 << 60}), "workflow.executionStartToCloseTimeout",
		},
		{
			workflow(schemas.WorkflowTypeDefaults{ActivityDefaults: &schemas.ActivityDefaults{List: "a"}}),
			workflow(schemas.WorkflowTypeDefaults{ActivityDefaults: &schemas.ActivityDefaults{List: "b"}}), "workflow.activityDefaults.list",
		},
		{activity(nil), activity(&schemas.RetryPolicy{}), ""},
		{activity(&schemas.RetryPolicy{NonRetryable: []string{"a"}}), activity(&schemas.RetryPolicy{NonRetryable: []string{"a"}}), ""},
		{activity(&schemas.RetryPolicy{NonRetryable: []string{"a"}}), activity(&schemas.RetryPolicy{NonRetryable: []string{"b"}}), "activity.retry.nonRetryable"},
	} {
		info := tc.have.Info(at)
		info.Status = schemas.TypeDeprecated
		if got := info.Differs(tc.want); got != tc.field {
			t.Errorf("%+v and %+v: got %q, want %q", tc.have, tc.want, got, tc.field)
		}
	}
}

const at = schemas.Timestamp(1_700_000_000_000_000_000)

// Bad input: every limit, with the field that breaks it.
func TestTypeRequestsAreChecked(t *testing.T) {
	long := strings.Repeat("x", 257)
	workflow := func(d schemas.WorkflowTypeDefaults) schemas.TypeRegisterRequest {
		return schemas.TypeRegisterRequest{Kind: "workflow", Name: "o", Workflow: &d}
	}
	activity := func(d schemas.ActivityTypeDefaults) schemas.TypeRegisterRequest {
		return schemas.TypeRegisterRequest{Kind: "activity", Name: "o", Activity: &d}
	}
	retry := func(r schemas.RetryPolicy) schemas.TypeRegisterRequest {
		return activity(schemas.ActivityTypeDefaults{Retry: &r})
	}
	for _, tc := range []struct {
		q     schemas.TypeRegisterRequest
		field string
	}{
		{schemas.TypeRegisterRequest{Kind: "workflow", Name: long[:256], Version: long[:64], Description: long}, ""},
		{workflow(schemas.WorkflowTypeDefaults{ExecutionStartToCloseTimeout: schemas.Unlimited, ChildPolicy: schemas.ChildAbandon}), ""},
		{retry(schemas.RetryPolicy{BackoffCoefficient: 1000, MaximumInterval: schemas.Unlimited, NonRetryable: []string{"a"}}), ""},
		{schemas.TypeRegisterRequest{Name: "o"}, "kind"},
		{schemas.TypeRegisterRequest{Kind: "lambda", Name: "o"}, "kind"},
		{schemas.TypeRegisterRequest{Kind: "workflow"}, "name"},
		{schemas.TypeRegisterRequest{Kind: "workflow", Name: long}, "name"},
		{schemas.TypeRegisterRequest{Kind: "workflow", Name: "a\nb"}, "name"},
		{schemas.TypeRegisterRequest{Kind: "workflow", Name: "\xff"}, "name"},
		{schemas.TypeRegisterRequest{Kind: "workflow", Name: "o", Version: long[:65]}, "version"},
		{schemas.TypeRegisterRequest{Kind: "workflow", Name: "o", Version: "\x00"}, "version"},
		{schemas.TypeRegisterRequest{Kind: "workflow", Name: "o", Description: strings.Repeat("x", 1025)}, "description"},
		{schemas.TypeRegisterRequest{Kind: "workflow", Name: "o", Description: "\xff"}, "description"},
		{schemas.TypeRegisterRequest{Kind: "workflow", Name: "o", Activity: &schemas.ActivityTypeDefaults{}}, "activity"},
		{schemas.TypeRegisterRequest{Kind: "activity", Name: "o", Workflow: &schemas.WorkflowTypeDefaults{}}, "workflow"},
		{workflow(schemas.WorkflowTypeDefaults{ExecutionStartToCloseTimeout: -2}), "workflow.executionStartToCloseTimeout"},
		{workflow(schemas.WorkflowTypeDefaults{TaskStartToCloseTimeout: -2}), "workflow.taskStartToCloseTimeout"},
		{workflow(schemas.WorkflowTypeDefaults{TaskScheduleToStartTimeout: -2}), "workflow.taskScheduleToStartTimeout"},
		{workflow(schemas.WorkflowTypeDefaults{ChildPolicy: "KILL"}), "workflow.childPolicy"},
		{workflow(schemas.WorkflowTypeDefaults{ActivityDefaults: &schemas.ActivityDefaults{List: "a b"}}), "workflow.activityDefaults.list"},
		{workflow(schemas.WorkflowTypeDefaults{ActivityDefaults: &schemas.ActivityDefaults{HeartbeatTimeout: -3}}), "workflow.activityDefaults.heartbeatTimeout"},
		{activity(schemas.ActivityTypeDefaults{List: "a.b"}), "activity.list"},
		{activity(schemas.ActivityTypeDefaults{ScheduleToCloseTimeout: -3}), "activity.scheduleToCloseTimeout"},
		{retry(schemas.RetryPolicy{BackoffCoefficient: 0.5}), "activity.retry.backoffCoefficient"},
		{retry(schemas.RetryPolicy{BackoffCoefficient: 1}), ""},
		{retry(schemas.RetryPolicy{BackoffCoefficient: math.NaN()}), "activity.retry.backoffCoefficient"},
		{retry(schemas.RetryPolicy{BackoffCoefficient: math.Inf(1)}), "activity.retry.backoffCoefficient"},
		{retry(schemas.RetryPolicy{MaximumAttempts: -1}), "activity.retry.maximumAttempts"},
		{retry(schemas.RetryPolicy{InitialInterval: -5}), "activity.retry.initialInterval"},
		{retry(schemas.RetryPolicy{NonRetryable: []string{""}}), "activity.retry.nonRetryable"},
		{retry(schemas.RetryPolicy{NonRetryable: make([]string, 65)}), "activity.retry.nonRetryable"},
	} {
		err := tc.q.Validate()
		switch {
		case tc.field == "" && err != nil:
			t.Errorf("%+v: got %v, want none", tc.q, err)
		case tc.field != "" && (err == nil || err.Field != tc.field || err.Code != schemas.CodeInvalid || !strings.Contains(err.Message, tc.field)):
			t.Errorf("%+v: got %+v, want an error in field %s", tc.q, err, tc.field)
		}
	}
}

const orderType = `{"kind":"workflow","name":"order","version":"1"}`

// refusal is the error of an answer, nil if it has none.
func refusal(t *testing.T, answer map[string]any) *schemas.Error {
	t.Helper()
	raw, err := json.Marshal(answer["error"])
	if err != nil {
		t.Fatal(err)
	}
	var e *schemas.Error
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// wantRefusal checks code and field, and that there is a way out.
func wantRefusal(t *testing.T, answer map[string]any, code schemas.Code, field string) {
	t.Helper()
	if e := refusal(t, answer); e == nil || e.Code != code || e.Field != field || e.Hint == "" || e.Message == "" {
		t.Fatalf("got %v, want code %s in field %q with a hint", answer, code, field)
	}
}

func wantChanged(t *testing.T, answer map[string]any, changed bool) {
	t.Helper()
	if got, _ := answer["changed"].(bool); answer["error"] != nil || got != changed {
		t.Fatalf("got %v, want changed %v", answer, changed)
	}
}

func TestTypesAreImmutable(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		const first = `{"kind":"workflow","name":"order","version":"1","description":"d","workflow":{"taskStartToCloseTimeout":5}}`
		wantChanged(t, f.api("typeRegister", first), true)
		wantChanged(t, f.api("typeRegister", first), false)
		wantRefusal(t, f.api("typeRegister", strings.Replace(first, "5", "6", 1)), schemas.CodeAlreadyExists, "workflow.taskStartToCloseTimeout")
		wantRefusal(t, f.api("typeRegister", orderType), schemas.CodeAlreadyExists, "description")
		wantChanged(t, f.api("typeRegister", strings.Replace(first, `"version":"1"`, `"version":"2"`, 1)), true)

		raw, _, err := f.post.KVGet(t.Context(), ns.BucketTypes(), "workflow.order.1")
		if err != nil || !strings.HasPrefix(string(raw), `{"v":1,"kind":"workflow","name":"order","version":"1","description":"d","status":"REGISTERED","createdAt":"`) {
			t.Fatalf("got %s, %v, want JSON that nats kv get shows", raw, err)
		}
		wantChanged(t, f.api("typeDeprecate", orderType), true)
		wantChanged(t, f.api("typeDeprecate", orderType), false)
		a := f.api("typeRegister", first)
		wantChanged(t, a, false)
		if status := a["type"].(map[string]any)["status"]; status != "DEPRECATED" {
			t.Fatalf("a repeated registration has made the type %v; want it still deprecated", status)
		}
	})
}

// Two registrations of different contents at once: one wins, the others hear why not. Equal ones all succeed.
func TestRegistrationRace(t *testing.T) {
	virtually(t, 2, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.node("b", nil)
		f.api("typeList", "{}")
		time.Sleep(5 * time.Second)
		const n = 16
		race := func(body func(i int) string) (won, same, lost int) {
			var wg sync.WaitGroup
			answers := make([]map[string]any, n)
			for i := range n {
				wg.Go(func() { answers[i] = f.api("typeRegister", body(i)) })
			}
			wg.Wait()
			for _, a := range answers {
				switch e := refusal(t, a); {
				case e != nil && e.Code == schemas.CodeAlreadyExists && e.Field == "description":
					lost++
				case e != nil:
					t.Errorf("got %v", e)
				case a["changed"] == true:
					won++
				default:
					same++
				}
			}
			return won, same, lost
		}
		different := func(i int) string { return fmt.Sprintf(`{"kind":"activity","name":"a","description":"%d"}`, i) }
		if won, same, lost := race(different); won != 1 || same != 0 || lost != n-1 {
			t.Fatalf("different contents: %d won, %d found the same, %d lost; want one winner", won, same, lost)
		}
		equal := func(int) string { return `{"kind":"activity","name":"b"}` }
		if won, same, lost := race(equal); won != 1 || same != n-1 || lost != 0 {
			t.Fatalf("equal contents: %d won, %d found the same, %d lost; want one that registered", won, same, lost)
		}
	})
}

func startOf(id, more string) string { return `{"workflowId":"` + id + `","type":"order"` + more + `}` }

// SWF: no new runs of a deprecated type, those that are open go on; and a restart does not forget it.
func TestDeprecation(t *testing.T) {
	virtually(t, 2, func(t *testing.T, f *fleet) {
		f.decider("order", signaled)
		a := f.node("a", nil)
		const v1 = `,"typeVersion":"1"`
		wantRefusal(t, f.api("typeDeprecate", orderType), schemas.CodeNotFound, "name")
		f.api("typeRegister", orderType)
		if a := f.start(startOf("open", v1)); a["error"] != nil {
			t.Fatal(a)
		}
		wantRefusal(t, f.api("typeDelete", orderType), schemas.CodeConflict, "")
		wantChanged(t, f.api("typeDeprecate", orderType), true)
		wantRefusal(t, f.start(startOf("x", v1)), schemas.CodeDeprecated, "type") // at once, through the same broker
		for _, more := range []string{"", `,"typeVersion":"2"`} {
			if a := f.start(startOf("other"+more[:min(1, len(more))], more)); a["error"] != nil {
				t.Fatalf("another version: %v", a)
			}
		}
		b := f.node("b", nil)
		time.Sleep(5 * time.Second)
		a.stop()
		wantRefusal(t, f.start(startOf("x", v1)), schemas.CodeDeprecated, "type") // by the other broker
		b.stop()
		f.node("c", nil)
		wantRefusal(t, f.start(startOf("x", v1)), schemas.CodeDeprecated, "type") // the first answer after a restart
		f.publish("drover.default.signal.open.go", "")
		f.completes("open")
		wantChanged(t, f.api("typeUndeprecate", orderType), true)
		wantChanged(t, f.api("typeUndeprecate", orderType), false)
		if a := f.start(startOf("x", v1)); a["error"] != nil {
			t.Fatal(a)
		}
	})
}

func TestChangesReachAllBrokers(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		for _, name := range []string{"a", "b", "c"} {
			f.node(name, nil)
		}
		f.api("typeRegister", orderType)
		time.Sleep(5 * time.Second)
		f.api("typeDeprecate", orderType)
		time.Sleep(50 * time.Millisecond)
		for range 60 { // the queue group deals them out at random
			wantRefusal(t, f.start(startOf("x", `,"typeVersion":"1"`)), schemas.CodeDeprecated, "type")
		}
		f.api("typeUndeprecate", orderType)
		time.Sleep(50 * time.Millisecond)
		for i := range 60 {
			if a := f.start(startOf(fmt.Sprint("x", i), `,"typeVersion":"1"`)); a["error"] != nil {
				t.Fatal(a)
			}
		}
	})
}

// The broker that carried a change out knows it when it answers, however far its watch is.
func TestOwnChangesCountAtOnce(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.api("typeRegister", orderType)
		for i := range 100 {
			f.api("typeDeprecate", orderType)
			wantRefusal(t, f.start(startOf("x", `,"typeVersion":"1"`)), schemas.CodeDeprecated, "type")
			f.api("typeUndeprecate", orderType)
			if a := f.start(startOf(fmt.Sprint("x", i), `,"typeVersion":"1"`)); a["error"] != nil {
				t.Fatal(a)
			}
		}
	})
}

// A broker reads the bucket to its end before it answers anything, however long that takes.
func TestTypesAreReadBeforeTheFirstAnswer(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		put := func(name string) {
			t.Helper()
			i := &schemas.TypeInfo{V: 1, Kind: schemas.WorkflowKind, Name: name, Status: schemas.TypeDeprecated}
			value, err := schemas.MarshalJSON(i)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.post.KVCreate(t.Context(), ns.BucketTypes(), "workflow."+name+".=", value, 0); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 2000 {
			put(fmt.Sprint("other", i))
		}
		put("order")
		f.node("a", nil)
		var raw []byte
		for raw == nil { // without a pause: the very first answer counts
			raw = f.tryRequest(ns.API("start"), startOf("x", ""))
		}
		var a map[string]any
		if err := json.Unmarshal(raw, &a); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, a, schemas.CodeDeprecated, "type")
	})
}

func TestDeletedTypes(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		wantRefusal(t, f.api("typeDelete", orderType), schemas.CodeNotFound, "name")
		f.api("typeRegister", `{"kind":"workflow","name":"order","version":"1","description":"old"}`)
		f.api("typeDeprecate", orderType)
		wantChanged(t, f.api("typeDelete", orderType), true)
		if a := f.start(startOf("w", `,"typeVersion":"1"`)); a["error"] != nil {
			t.Fatalf("the broker that has deleted a type must know it at once: %v", a)
		}
		wantChanged(t, f.api("typeDelete", orderType), false) // the answer to the first may be lost
		for _, verb := range []string{"typeDescribe", "typeDeprecate", "typeUndeprecate"} {
			wantRefusal(t, f.api(verb, orderType), schemas.CodeNotFound, "name")
		}
		if a := f.start(startOf("x", `,"typeVersion":"1"`)); a["error"] != nil {
			t.Fatalf("a deleted type counts as never registered: %v", a)
		}
		if a := f.api("typeList", "{}"); len(a["types"].([]any)) != 0 {
			t.Fatalf("got %v, want an empty list", a)
		}
		wantChanged(t, f.api("typeRegister", `{"kind":"workflow","name":"order","version":"1","description":"new"}`), true)
	})
}

func TestNamespaceDemandsTypes(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil, func(o *broker.Options) { o.RequireTypes = true })
		a := f.start(startOf("x", `,"typeVersion":"1"`))
		wantRefusal(t, a, schemas.CodeNotFound, "type")
		if e := refusal(t, a); !strings.Contains(e.Hint, "drover type register workflow order --version 1") {
			t.Fatalf("got hint %q, want the command that registers it", e.Hint)
		}
		f.api("typeRegister", orderType)
		if a := f.start(startOf("x", `,"typeVersion":"1"`)); a["error"] != nil {
			t.Fatal(a)
		}
		a = f.start(startOf("y", ""))
		wantRefusal(t, a, schemas.CodeNotFound, "type")
		if e := refusal(t, a); !strings.Contains(e.Hint, `--type-version (typeVersion) one that is registered: "1";`) {
			t.Fatalf("got hint %q, want the version that is registered", e.Hint)
		}
	})
}

// What is registered reaches the core: defaults of a workflow and of an activity, and the refusal of a deprecated one.
func TestTypesReachTheCore(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.api("typeRegister", `{"kind":"workflow","name":"order","workflow":{"executionStartToCloseTimeout":77,"taskPriority":3}}`)
		f.api("typeRegister", `{"kind":"activity","name":"work","activity":{"heartbeatTimeout":9,"startToCloseTimeout":"NONE"}}`)
		f.api("typeRegister", `{"kind":"activity","name":"gone"}`)
		f.api("typeDeprecate", `{"kind":"activity","name":"gone"}`)
		f.decider("order", func(d *decisionTask) string {
			if d.has("ActivityScheduled") {
				return complete
			}
			return "[" + scheduleActivity("1", "") + "," + strings.Replace(scheduleActivity("2", ""), `"work"`, `"gone"`, 1) + "]"
		})
		f.start(startOf("x", ""))
		f.result("x")
		var started *schemas.WorkflowStarted
		var scheduled *schemas.ActivityScheduled
		var failed *schemas.ActivityScheduleFailed
		for _, e := range f.events("x") {
			switch a := e.Attributes.(type) {
			case *schemas.WorkflowStarted:
				started = a
			case *schemas.ActivityScheduled:
				scheduled = a
			case *schemas.ActivityScheduleFailed:
				failed = a
			}
		}
		if started.ExecutionStartToCloseTimeout != schemas.Seconds(77) || started.TaskPriority != 3 {
			t.Fatalf("got %+v, want the defaults of the type", started)
		}
		if scheduled == nil || scheduled.HeartbeatTimeout != schemas.Seconds(9) || scheduled.StartToCloseTimeout != schemas.Unlimited {
			t.Fatalf("got %+v, want the defaults of the type", scheduled)
		}
		if failed == nil || failed.Cause != schemas.CauseActivityTypeDeprecated {
			t.Fatalf("got %+v, want ACTIVITY_TYPE_DEPRECATED", failed)
		}
	})
}

func TestTypeList(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		var want []string
		for _, kind := range []string{"activity", "workflow"} {
			for _, name := range []string{"a", "a b", "a-b", "b.", "é"} {
				for _, version := range []string{"", "1", "2"} {
					want = append(want, kind+"/"+name+"/"+version)
					f.api("typeRegister", fmt.Sprintf(`{"kind":%q,"name":%q,"version":%q}`, kind, name, version))
				}
			}
		}
		f.api("typeDeprecate", `{"kind":"workflow","name":"a b","version":"2"}`)
		list := func(filter string, limit int) (got []string) {
			for cursor := ""; ; {
				quoted, err := json.Marshal(cursor)
				if err != nil {
					t.Fatal(err)
				}
				a := f.api("typeList", fmt.Sprintf(`{"limit":%d,"cursor":%s%s}`, limit, quoted, filter))
				page, _ := a["types"].([]any)
				for _, v := range page {
					i := v.(map[string]any)
					version, _ := i["version"].(string)
					got = append(got, fmt.Sprintf("%v/%v/%v", i["kind"], i["name"], version))
				}
				if cursor, _ = a["cursor"].(string); cursor == "" {
					return got
				}
				if len(page) != limit {
					t.Fatalf("a page of %d types, want %d", len(page), limit)
				}
			}
		}
		for _, limit := range []int{1, 7, 100} {
			if d := cmp.Diff(want, list("", limit)); d != "" {
				t.Fatal(d)
			}
		}
		if d := cmp.Diff(want[:15], list(`,"kind":"activity"`, 4)); d != "" {
			t.Fatal(d)
		}
		if got := list(`,"prefix":"a ","status":"REGISTERED"`, 100); len(got) != 5 || slices.Contains(got, "workflow/a b/2") {
			t.Fatalf("got %v, want five, without the deprecated one", got)
		}
		if d := cmp.Diff([]string{"workflow/a b/2"}, list(`,"status":"DEPRECATED"`, 100)); d != "" {
			t.Fatal(d)
		}
		wantRefusal(t, f.api("typeList", `{"cursor":"x"}`), schemas.CodeInvalid, "cursor")
		if e := refusal(t, f.api("typeList", `{"kind":"x"}`)); e == nil || e.Field != "kind" {
			t.Fatalf("got %v, want an error in field kind", e)
		}
	})
}

// Types too large for one message come in more pages, whatever the limit says.
func TestLargeTypeList(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.api("typeList", "{}")
		reasons := make([]string, 64)
		for i := range reasons {
			reasons[i] = fmt.Sprint(i) + strings.Repeat("r", 250)
		}
		const n = 40
		for i := range n {
			q := &schemas.TypeRegisterRequest{V: 1, Kind: schemas.ActivityKind, Name: fmt.Sprint(i), Activity: &schemas.ActivityTypeDefaults{Retry: &schemas.RetryPolicy{NonRetryable: reasons}}}
			body, err := schemas.MarshalJSON(q)
			if err != nil {
				t.Fatal(err)
			}
			wantChanged(t, f.api("typeRegister", string(body)), true)
		}
		first := f.api("typeList", `{"limit":1000}`)
		got := len(first["types"].([]any))
		if got == 0 || got == n {
			t.Fatalf("%d types on the first page, want some of %d", got, n)
		}
	})
}

// Bad input: the bucket was written by hand, and requests that are none.
func TestForeignValuesInTheTypesBucket(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		put := func(key, value string) {
			t.Helper()
			if _, err := f.post.KVCreate(t.Context(), ns.BucketTypes(), key, []byte(value), 0); err != nil {
				t.Fatal(err)
			}
		}
		put("workflow.order.1", "nonsense")
		put("workflow.order.2", `{"v":1,"kind":"workflow","name":"order","version":"1","status":"DEPRECATED"}`)
		put("nothing", "")
		put("workflow.order.=", `{"kind":"workflow","name":"order","status":"DEPRECATED"}`)
		f.node("a", nil)
		wantRefusal(t, f.start(startOf("x", "")), schemas.CodeDeprecated, "type") // well written by hand
		for i := range 2 {
			if a := f.start(startOf(fmt.Sprint("x", i), fmt.Sprintf(`,"typeVersion":"%d"`, i+1))); a["error"] != nil {
				t.Fatal(a)
			}
		}
		wantRefusal(t, f.api("typeRegister", orderType), schemas.CodeConflict, "")
		wantRefusal(t, f.api("typeDescribe", orderType), schemas.CodeConflict, "")
		for _, body := range []string{"", "{", "\x01\xdd\xff\xff\xff\xff", `{"v":9}`, `{"kind":"workflow"}`, `{"kind":7}`, `{"kind":"workflow","name":"a\u0000"}`} {
			for _, verb := range []string{"typeRegister", "typeDeprecate", "typeUndeprecate", "typeDelete", "typeDescribe"} {
				if e := refusal(t, f.api(verb, body)); e == nil || e.Code != schemas.CodeInvalid {
					t.Errorf("%s %q: got %v, want invalid_argument", verb, body, e)
				}
			}
		}
	})
}

// A bucket that was made anew has other revisions; what stood in the old one no longer counts.
func TestTypesBucketMadeAnew(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		for i := range 5 {
			f.api("typeRegister", fmt.Sprintf(`{"kind":"workflow","name":"w%d"}`, i))
		}
		f.api("typeRegister", orderType)
		f.api("typeDeprecate", orderType)
		wantRefusal(t, f.start(startOf("x", `,"typeVersion":"1"`)), schemas.CodeDeprecated, "type")
		synctest.Wait() // a watch that the bucket has brought nothing cannot tell it from another one
		if err := f.js.DeleteStream(t.Context(), "KV_"+ns.BucketTypes()); err != nil {
			t.Fatal(err)
		}
		if e := refusal(t, f.api("typeRegister", orderType)); e == nil || e.Code != schemas.CodeUnavailable {
			t.Fatalf("got %v, want unavailable while there is no bucket", e)
		}
		if _, err := topology.Ensure(t.Context(), f.post, topology.Options{Memory: true}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if a := f.start(startOf("x", `,"typeVersion":"1"`)); a["error"] != nil {
			t.Fatalf("the type is gone with the bucket: %v", a)
		}
		wantChanged(t, f.api("typeRegister", orderType), true)
		wantChanged(t, f.api("typeDeprecate", orderType), true)
		wantRefusal(t, f.start(startOf("y", `,"typeVersion":"1"`)), schemas.CodeDeprecated, "type")
		_, rev, err := f.post.KVGet(t.Context(), ns.BucketTypes(), "workflow.order.1")
		if err != nil || rev != 2 {
			t.Fatalf("got revision %d, %v, want 2: a change is one write", rev, err)
		}
		if _, _, err := f.post.KVGet(t.Context(), ns.BucketTypes(), "workflow.w0.="); !errors.Is(err, natsconn.ErrNotFound) {
			t.Fatalf("got %v, want nothing of the old bucket", err)
		}
	})
}

// A broker that is started while the server of its buckets and streams has no leader waits for one, and does not end.
func TestBrokerWaitsForALeaderAsItBegins(t *testing.T) {
	for name, question := range map[string]string{
		"types": "$JS.API.CONSUMER.CREATE.KV_drover-default-types.",
		"locks": "$JS.API.CONSUMER.CREATE.KV_drover-default-locks.",
		"clock": "$JS.API.STREAM.INFO." + ns.StreamHistory(0),
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				leader := time.Now().Add(25 * time.Second)
				var asked atomic.Int64
				f.node("a", func(subject string, _ []byte) cutwire.Verdict {
					if strings.HasPrefix(subject, question) && time.Now().Before(leader) {
						asked.Add(1)
						return cutwire.Swallow
					}
					return cutwire.Pass
				})
				f.decider("order", func(*decisionTask) string { return complete })
				for f.start(startO)["error"] != nil { // the API answers before there is an owner
					time.Sleep(time.Second)
				}
				f.completes("o")
				if time.Now().Before(leader) || asked.Load() < 2 {
					t.Errorf("served at %v after %d questions, want it after %v", time.Now(), asked.Load(), leader)
				}
			})
		})
	}
}
