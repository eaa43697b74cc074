package contract_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/schemas"
)

type (
	inner       struct{ Done chan int }
	withChannel struct {
		Name  string
		Lines []inner
	}
	withFunc struct {
		Then map[string]*struct{ Do func() }
	}
	withError   struct{ Err error }
	withContext struct{ Ctx context.Context }
	hidden      struct{ amount int }
	withMutex   struct{ Lock sync.Mutex }
	twoNames    struct {
		A int `json:"B"`
		B int
	}
	halfJSON     struct{ n int }
	halfText     int
	structKey    struct{ Of map[inner]int }
	pointerInner struct{ *inner }
)

func (halfJSON) MarshalJSON() ([]byte, error) { return []byte("1"), nil }
func (halfText) MarshalText() ([]byte, error) { return []byte("one"), nil }

// The mistakes of a declaration: each panics with a text that names the field and the way out.
func TestMistakesPanic(t *testing.T) {
	const n = "n"
	act := func(opts ...contract.Option) func() {
		return func() { contract.Activity[int, int](n, opts...) }
	}
	approve := contract.Signal[int]("approve")
	for _, tc := range []struct {
		name    string
		declare func()
		want    string
	}{
		{"empty name", func() { contract.Activity[int, int]("") }, `activity "": the name: invalid name: it is empty; want 1 to 256 bytes`},
		{"long name", func() { contract.Workflow[int, int](strings.Repeat("a", 201)) }, "the name has 201 bytes; want 1 to 200"},
		{"long signal", func() { contract.Signal[int](strings.Repeat("a", 257)) }, "the name has 257 bytes; want 1 to 256"},
		{"control character", func() { contract.Signal[int]("a\nb") }, "control character U+000A at byte 1"},
		{"path as a name", func() { contract.Activity[int, int]("1.2/charge") }, "begins like the path of a coroutine"},
		{"empty reason", func() { contract.Fault[int]("") }, `fault "": the name: invalid name: it is empty`},
		{"a reason of the engine", func() { contract.Fault[int]("interrupted") }, "choose another"},

		{"channel", func() { contract.Activity[chan int, int](n) }, "input chan int: JSON cannot hold a channel (chan int)"},
		{"channel in a field", func() { contract.Activity[int, withChannel](n) }, "result contract_test.withChannel, field Lines[].Done: JSON cannot hold a channel (chan int): leave the field out"},
		{"function", func() { contract.Signal[withFunc](n) }, "value contract_test.withFunc, field Then[].Do: JSON cannot hold a function (func()): leave the field out"},
		{"complex", func() { contract.Fault[complex128](n) }, "details complex128: JSON has no complex numbers: use two floats"},
		{"error", func() { contract.Workflow[withError, int](n) }, "field Err: nobody can tell which type is to be made of JSON for the interface error: use"},
		{"context", func() { contract.Workflow[withContext, int](n) }, "field Ctx: nobody can tell"},
		{"nothing exported", func() { contract.Activity[hidden, int](n) }, "hidden has no exported field, so JSON would lose all of it: export"},
		{"mutex", func() { contract.Activity[withMutex, int](n) }, "field Lock: sync.Mutex has no exported field"},
		{"two fields of one name", func() { contract.Activity[twoNames, int](n) }, `field B: it has the JSON name "B" of field A`},
		{"MarshalJSON alone", func() { contract.Activity[[]halfJSON, int](n) }, "field []: contract_test.halfJSON has MarshalJSON and no UnmarshalJSON"},
		{"MarshalText alone", func() { contract.Activity[halfText, int](n) }, "halfText has MarshalText and no UnmarshalText"},
		{"keys", func() { contract.Activity[structKey, int](n) }, "field Of: the keys of map[contract_test.inner]int are no texts: use string"},
		{"embedded pointer", func() { contract.Activity[pointerInner, int](n) }, "field inner: JSON cannot make the embedded *contract_test.inner"},

		{"option twice", act(contract.List("a"), contract.List("b")), `activity "n": List is given twice: keep one`},
		{"Retry and NoRetry", act(contract.Retry(schemas.RetryPolicy{}), contract.NoRetry()), "Retry and NoRetry contradict each other"},
		{"at most once, and again", act(contract.NotIdempotent(), contract.MaximumInterruptions(3)), "NotIdempotent and MaximumInterruptions contradict each other"},
		{"one attempt longer than all", act(contract.StartToClose(time.Hour), contract.ScheduleToClose(time.Minute)), "StartToClose (1h0m0s) is longer than ScheduleToClose (1m0s)"},
		{"wait longer than all", act(contract.ScheduleToStart(time.Hour), contract.ScheduleToClose(time.Minute)), "ScheduleToStart (1h0m0s) is longer than ScheduleToClose (1m0s)"},
		{"heartbeats longer than the attempt", act(contract.Heartbeat(time.Hour), contract.StartToClose(time.Minute)), "Heartbeat (1h0m0s) is longer than StartToClose (1m0s)"},
		{"first pause longer than the longest", act(contract.Retry(schemas.RetryPolicy{InitialInterval: 2, MaximumInterval: 1})), "InitialInterval of Retry (2ns) is longer than its MaximumInterval (1ns)"},
		{"negative", act(contract.StartDelay(-time.Second)), "startDelay: it is negative"},
		{"attempts", act(contract.Retry(schemas.RetryPolicy{MaximumAttempts: -1})), "retry.maximumAttempts: it is -1"},
		{"list", act(contract.List("a b")), `List "a b": invalid name`},
		{"version", act(contract.TypeVersion(strings.Repeat("1", 65))), "TypeVersion: 65 bytes; want at most 64"},
		{"option of calls", act(contract.Abandon()), "Abandon is for calls alone"},
		{"option of children", act(contract.WorkflowID("x")), "WorkflowID is for children alone"},
		{"zero option", act(contract.Option{}), "use the functions of package contract"},

		{"signal twice", func() { contract.Workflow[int, int](n, approve, contract.Signal[string]("approve")) }, `workflow "n": it accepts "approve" twice`},
		{"nil signal", func() { contract.Workflow[int, int](n, approve, nil) }, "the message 2 that it accepts is nil"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			defer func() {
				text := fmt.Sprint(recover())
				if !strings.HasPrefix(text, "contract: ") || !strings.Contains(text, tc.want) {
					t.Errorf("got %s\nwant a panic with %s", text, tc.want)
				}
			}()
			tc.declare()
		})
	}
}

// No failure that a worker reports by itself can be taken for a fault.
func TestReasonsOfWorkersAreReserved(t *testing.T) {
	for _, reason := range []string{
		activity.ReasonPanic, activity.ReasonBadInput, activity.ReasonBadResult,
		activity.ReasonTooLarge, activity.ReasonPayload,
		schemas.ReasonInterrupted, string(schemas.TimeoutHeartbeat),
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q can be declared as a fault", reason)
				}
			}()
			contract.Fault[string](reason)
		}()
	}
}

type (
	tree struct {
		Left, Right *tree
		Children    []tree
		ByName      map[string]tree
	}
	base  struct{ ID string }
	mixed struct {
		base
		When    time.Time
		After   time.Duration
		Any     any
		Raw     json.RawMessage
		Bytes   []byte
		Payload schemas.Payload
		ByDay   map[int]float64
		ByTime  map[time.Time]bool
		Done    chan int `json:"-"`
		secret  func()
	}
)

var _ = []any{hidden{}.amount, halfJSON{}.n, mixed{}.secret} // read nowhere else

// What JSON can hold is taken, types with cycles among it.
func TestGoodTypes(t *testing.T) {
	contract.Activity[mixed, *mixed]("a")
	contract.Activity[tree, []tree]("a")
	contract.Activity[struct{}, any]("a")
	contract.Activity[[]byte, schemas.Payload]("a")
	contract.Activity[string, [3]bool]("abc/def#2")
	contract.Activity[map[string]any, time.Time](strings.Repeat("a", contract.MaxNameLen))
}
