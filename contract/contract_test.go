package contract_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/schemas"
)

type (
	order struct {
		ID    string `json:"id"`
		Items []item `json:"items"`
		base
		Due *time.Time `json:"due,omitempty"`
	}
	item struct {
		Price  float64            `json:"price"`
		Weight map[string]float32 `json:"weight,omitempty"`
	}
	decline struct{ Code int }
)

var (
	charge   = contract.Activity[order, item]("charge", contract.List("PCI"), contract.StartToClose(time.Minute))
	approve  = contract.Signal[decline]("approve")
	process  = contract.Workflow[order, item]("order", approve)
	declined = contract.Fault[decline]("declined")
)

func TestValuesRoundTrip(t *testing.T) {
	due := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	in := order{ID: "o-1", Items: []item{{Price: 2.5}}, Due: &due}
	p, err := process.EncodeInput(in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := process.DecodeInput(p)
	if diff := cmp.Diff(in, got, cmp.AllowUnexported(order{})); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
	out, err := charge.EncodeResult(item{Price: 1})
	if got, err2 := charge.DecodeResult(out); err != nil || err2 != nil || got.Price != 1 {
		t.Errorf("%v, %v, %+v", err, err2, got)
	}
	v, err := approve.Encode(decline{7})
	if got, err2 := approve.Decode(v); err != nil || err2 != nil || got.Code != 7 {
		t.Errorf("%v, %v, %+v", err, err2, got)
	}
	if accepts := process.Accepts(); len(accepts) != 1 || accepts[0].Name() != "approve" {
		t.Errorf("the workflow accepts %v, want approve", accepts)
	}
}

// picky writes itself by a method of its pointer.
type picky struct{ n int }

func (p *picky) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, `"%d"`, p.n), nil }
func (p *picky) UnmarshalJSON(b []byte) error {
	_, err := fmt.Sscanf(string(b), `"%d"`, &p.n)
	return err
}

func bytesOf[T any](t *testing.T, v T) string { //nolint:thelper // it is what is tested
	p, err := contract.Signal[T]("s").Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(p)
}

func TestForms(t *testing.T) {
	for _, tc := range []struct{ name, got, want string }{
		{"text", bytesOf(t, "a<b"), `"a\u003cb"`},
		{"none", bytesOf(t, struct{}{}), ""},
		{"bytes", bytesOf(t, []byte{1, 2}), "\x01\x02"},
		{"payload", bytesOf(t, schemas.Text("as it is")), "as it is"},
		{"nothing", bytesOf[any](t, nil), ""},
		{"nil pointer", bytesOf[*item](t, nil), "null"},
		{"method of the pointer", bytesOf(t, picky{7}), `"7"`},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, tc.got, tc.want)
		}
	}
	if v, err := contract.Signal[order]("s").Decode(nil); err != nil || v.ID != "" {
		t.Errorf("got %+v, %v of an empty payload, want the zero value", v, err)
	}
	if _, err := contract.Signal[struct{}]("s").Decode(schemas.Text("whatever")); err != nil {
		t.Errorf("struct{} means none, got %v", err)
	}
}

// An error names the contract, the Go type and the field.
func TestErrorsOfValues(t *testing.T) {
	nan := order{Items: []item{{}, {Weight: map[string]float32{"kg": float32(math.NaN())}}}}
	_, encoding := charge.EncodeInput(nan)
	wantError(t, encoding, `contract: activity "charge": input contract_test.order, field items[1].weight[kg]: payload: json: unsupported value: NaN`)
	for body, want := range map[string]string{
		`{"items":[{"price":1},{"price":"2"}]}`:   `activity "charge": input contract_test.order, field items[1].price: payload is not the expected JSON: `,
		`{"due":"tomorrow"}`:                      `field due: `,
		`{"ID":"x","id":1}`:                       `field id: `,
		`{"items":{"price":1}}`:                   `field items: `,
		`{"items":[{"weight":{"kg":1,"g":"1"}}]}`: `field items[0].weight[g]: `,
		`[]`:     `input contract_test.order: payload`,
		`{"id":`: `input contract_test.order: payload`,
	} {
		_, err := charge.DecodeInput(schemas.Text(body))
		wantError(t, err, want)
	}
	_, err := approve.Decode(schemas.Text(`{"Code":true}`))
	wantError(t, err, `contract: signal "approve": value contract_test.decline, field Code: `)
	_, err = process.DecodeResult(schemas.Text(`7`))
	wantError(t, err, `contract: workflow "order": result contract_test.item: `)
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestStartChild(t *testing.T) {
	kid := contract.Workflow[order, string]("kid")
	input, _ := kid.EncodeInput(order{ID: "o-1"})
	got, err := kid.StartChild(order{ID: "o-1"}, contract.WorkflowID("kid-1"), contract.Priority(2), contract.TypeVersion("3"),
		contract.ExecutionStartToClose(time.Hour), contract.ChildPolicy(schemas.ChildAbandon), contract.Abandon())
	want := &schemas.StartChild{
		WorkflowID: "kid-1", WorkflowType: "kid", WorkflowTypeVersion: "3", Input: input, TaskPriority: 2,
		ExecutionStartToCloseTimeout: schemas.Duration(time.Hour), ChildPolicy: schemas.ChildAbandon,
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	for _, tc := range []struct {
		opt  contract.Option
		want string
	}{
		{contract.List("a"), "List is for activities alone"},
		{contract.Option{}, "zero value"},
		{contract.ExecutionStartToClose(-5), "executionStartToCloseTimeout"},
	} {
		_, err := kid.StartChild(order{}, tc.opt)
		if !errors.Is(err, contract.ErrOption) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %q", err, tc.want)
		}
	}
	if _, err := charge.Schedule("a", order{}, contract.WorkflowID("x")); !errors.Is(err, contract.ErrOption) {
		t.Errorf("got %v for an activity with a workflow id", err)
	}
	if contract.Abandons(contract.List("a")) || !contract.Abandons(contract.List("a"), contract.Abandon()) {
		t.Error("Abandons does not find Abandon")
	}
}

func TestSchedule(t *testing.T) {
	got, err := charge.Schedule("charge#1", order{ID: "o-1"}, contract.List("EU"), contract.Priority(2), contract.StartToClose(0), contract.NoRetry())
	if err != nil {
		t.Fatal(err)
	}
	want := &schemas.ScheduleActivity{
		ActivityID: "charge#1", ActivityType: "charge", List: "EU", TaskPriority: 2,
		StartToCloseTimeout: schemas.Seconds(60), Retry: &schemas.RetryPolicy{MaximumAttempts: 1},
		Input: schemas.Text(`{"id":"o-1","items":null,"ID":""}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := charge.Schedule("a", order{}, contract.Heartbeat(-1)); err != nil {
		t.Errorf("no limit is refused: %v", err) // -1 is schemas.Unlimited
	}
	_, err = charge.Schedule("a", order{}, contract.Heartbeat(-5))
	if wantError(t, err, `contract: activity "charge": invalid option: heartbeatTimeout: it is negative`); !errors.Is(err, contract.ErrOption) {
		t.Errorf("%v is no ErrOption", err)
	}
	_, err = charge.Schedule("a", order{Items: []item{{Price: math.Inf(1)}}})
	wantError(t, err, "field items[0].price")
}

// Every option sets what the one of package decider does, and the policy is nobody else's.
func TestOptions(t *testing.T) {
	policy := schemas.RetryPolicy{MaximumAttempts: 3, NonRetryable: []string{"a"}}
	all := contract.Activity[struct{}, struct{}]("all", contract.Retry(policy), contract.List("l"), contract.StartToClose(time.Second),
		contract.ScheduleToStart(2*time.Second), contract.ScheduleToClose(3*time.Second), contract.Heartbeat(time.Millisecond), contract.StartDelay(4*time.Second),
		contract.MaximumInterruptions(5), contract.Priority(-1), contract.TypeVersion("v2"))
	policy.NonRetryable[0] = "changed"
	for range 2 {
		got, err := all.Schedule("id", struct{}{})
		want := &schemas.ScheduleActivity{
			ActivityID: "id", ActivityType: "all", ActivityTypeVersion: "v2", List: "l", TaskPriority: -1,
			StartToCloseTimeout: schemas.Seconds(1), ScheduleToStartTimeout: schemas.Seconds(2), ScheduleToCloseTimeout: schemas.Seconds(3),
			HeartbeatTimeout: schemas.Duration(time.Millisecond), StartDelay: schemas.Seconds(4), MaximumInterruptions: 5,
			Retry: &schemas.RetryPolicy{MaximumAttempts: 3, NonRetryable: []string{"a"}},
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
		got.Retry.MaximumAttempts = 100
	}
	plain, _ := contract.Activity[struct{}, struct{}]("plain", contract.NotIdempotent()).Schedule("id", struct{}{})
	if !plain.NotIdempotent || cmp.Diff(&schemas.RetryPolicy{}, plain.Retry) != "" {
		t.Errorf("got %+v, want the broker's policy", plain)
	}
}

func TestFaults(t *testing.T) {
	// Across processes: a worker reports reason and details, another one reads them from an event.
	reported, ok := contract.AsFault(fmt.Errorf("charge: %w", declined.With(decline{51})))
	if !ok {
		t.Fatal("the fault is not found")
	}
	body, err := schemas.Marshal(&schemas.Report{Reason: reported.Reason, Details: reported.Details})
	if err != nil {
		t.Fatal(err)
	}
	var read schemas.Report
	if err := schemas.Unmarshal(body, &read); err != nil {
		t.Fatal(err)
	}
	arrived := fmt.Errorf("activity charge#1 failed: %w", &contract.FaultError{Reason: read.Reason, Details: read.Details})

	other := contract.Fault[decline]("other")
	same := contract.Fault[decline]("declined") // in another program
	if !errors.Is(arrived, declined) || !errors.Is(arrived, same) || errors.Is(arrived, other) || errors.Is(errors.New("declined"), declined) {
		t.Errorf("%v is the wrong fault", arrived)
	}
	if d, ok := declined.Details(arrived); !ok || d.Code != 51 {
		t.Errorf("got %+v, %t, want 51", d, ok)
	}
	if _, ok := other.Details(arrived); ok {
		t.Error("another fault has its details")
	}
	if text := arrived.Error(); text != `activity charge#1 failed: declined: {"Code":51}` {
		t.Error(text)
	}

	// As it is: no details.
	bare := fmt.Errorf("x: %w", declined)
	f, ok := contract.AsFault(bare)
	if d, has := declined.Details(bare); !ok || f.Reason != "declined" || !has || d.Code != 0 || !errors.Is(bare, same) {
		t.Errorf("got %+v, %t, %+v, %t", f, ok, d, has)
	}
	// Among others, the one that is asked for.
	joined := errors.Join(errors.New("x"), other.With(decline{1}), declined.With(decline{2}))
	if d, ok := declined.Details(joined); !ok || d.Code != 2 || !errors.Is(joined, declined) {
		t.Errorf("got %+v, %t", d, ok)
	}
	if f, ok := contract.AsFault(joined); !ok || f.Reason != "other" {
		t.Errorf("got %+v, want the first", f)
	}
	// Details of another form, and none at all.
	if _, ok := declined.Details(&contract.FaultError{Reason: "declined", Details: schemas.Text("{{")}); ok {
		t.Error("what is no decline is taken for one")
	}
	if _, ok := contract.AsFault(nil); ok || errors.Is(nil, declined) {
		t.Error("no error is a fault")
	}
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, `fault "ratio": details float64: payload: json: unsupported value: NaN`) {
			t.Error(text)
		}
	}()
	_ = contract.Fault[float64]("ratio").With(math.NaN())
}
