package runs

import (
	"reflect"
	"strings"
	"testing"

	"github.com/droverhq/drover/schemas"
)

// Pages of a history and the windows of tasks end where the next event would be too much: whatever an event carries counts.
func TestEventsAreNotUnderrated(t *testing.T) {
	for _, typ := range schemas.EventTypes() {
		var e schemas.Event
		if err := schemas.Unmarshal([]byte(`{"id":1,"type":"`+string(typ)+`","time":"2000-01-01T00:00:00Z","attributes":{}}`), &e); err != nil {
			t.Fatal(err)
		}
		a := reflect.ValueOf(e.Attributes).Elem()
		for i := range a.NumField() {
			enlarge(a.Field(i), a.Type().Field(i).Name)
		}
		for name, encode := range map[string]func(any) ([]byte, error){"JSON": schemas.MarshalJSON, "msgpack": schemas.Marshal} {
			b, err := encode(&e)
			if err != nil {
				t.Fatal(err)
			}
			if got := SizeOf(e); got < len(b) {
				t.Errorf("%s: SizeOf says %d; it takes %d bytes in %s", typ, got, len(b), name)
			}
		}
	}
}

// enlarge makes what has no bound large, and of what there may be much it makes much.
func enlarge(v reflect.Value, name string) {
	switch p := v.Addr().Interface().(type) {
	case *schemas.Payload:
		*p = schemas.Payload(strings.Repeat("\xff", 30_000))
	case *string:
		if name == "Reason" || name == "Details" {
			*p = strings.Repeat("x", 30_000)
		}
	case *[]string:
		for range 1000 {
			*p = append(*p, strings.Repeat("x", 30))
		}
	case *map[string]string:
		*p = map[string]string{}
		for i := range 1000 {
			(*p)[strings.Repeat("x", i%30)+string(rune('a'+i))] = "y"
		}
	case *[]schemas.HeldLock:
		for range 100 {
			*p = append(*p, schemas.HeldLock{Lock: "lock", Scope: "scope", Limit: 1000, Lease: 3e9, Fence: 1 << 60, Expires: 1 << 60, Run: "run", EventID: 1000, Holder: &schemas.Execution{WorkflowID: "w", Run: "run"}})
		}
	}
}
