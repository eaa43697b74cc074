package schemas_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/droverhq/drover/schemas"
)

// encodings are the two forms of every body.
var encodings = []struct {
	name    string
	marshal func(any) ([]byte, error)
}{
	{"msgpack", schemas.MarshalNamed},
	{"stored", schemas.Marshal}, // msgpack too, and of records the compact form
	{"json", schemas.MarshalJSON},
}

// roundTrip encodes v, a pointer, and decodes it into a new value of its type.
func roundTrip[T any](t *testing.T, marshal func(any) ([]byte, error), v T) T {
	t.Helper()
	b, err := marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	got := reflect.New(reflect.TypeOf(v).Elem()).Interface()
	if err := schemas.Unmarshal(b, got); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	return got.(T)
}

// everything returns a filled value of every message, and of a message for every event and decision.
func everything(t *testing.T) map[string]any {
	t.Helper()
	all := make(map[string]any)
	for _, m := range messages() {
		all[reflect.TypeOf(m).Elem().Name()] = filled(t, m)
	}
	for _, e := range filledEvents(t) {
		all["event "+string(e.Type())] = &schemas.HistoryResponse{Run: "r", Events: []schemas.Event{e}}
	}
	for _, d := range filledDecisions(t) {
		all["decision "+string(d.Type())] = &schemas.DecisionReply{Token: "t", Decisions: []schemas.Decision{d}}
	}
	return all
}

func TestRoundTrip(t *testing.T) {
	for name, v := range everything(t) {
		for _, enc := range encodings {
			t.Run(name+"/"+enc.name, func(t *testing.T) {
				if diff := cmp.Diff(v, roundTrip(t, enc.marshal, v)); diff != "" {
					t.Fatalf("the round trip changed it (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestRoundTripOfZero(t *testing.T) {
	for _, m := range messages() {
		for _, enc := range encodings {
			t.Run(reflect.TypeOf(m).Elem().Name()+"/"+enc.name, func(t *testing.T) {
				if diff := cmp.Diff(m, roundTrip(t, enc.marshal, m)); diff != "" {
					t.Fatalf("the round trip changed it (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// What omitempty drops comes back nil; a list that is always written keeps the difference between nil and empty.
func TestRoundTripOfEmpty(t *testing.T) {
	for _, enc := range encodings {
		t.Run(enc.name, func(t *testing.T) {
			page := roundTrip(t, enc.marshal, &schemas.HistoryResponse{Events: []schemas.Event{}})
			if page.Events == nil || len(page.Events) != 0 {
				t.Fatalf("events: got %#v, want an empty slice", page.Events)
			}
			reply := roundTrip(t, enc.marshal, &schemas.DecisionReply{Decisions: []schemas.Decision{}, Context: schemas.Payload{}})
			if reply.Decisions == nil || len(reply.Decisions) != 0 {
				t.Fatalf("decisions: got %#v, want an empty slice", reply.Decisions)
			}
			if reply.Context != nil {
				t.Fatalf("context: got %#v, want nil", reply.Context)
			}
			start := roundTrip(t, enc.marshal, &schemas.StartRequest{TagList: []string{}, Attributes: map[string]string{}})
			if start.TagList != nil || start.Attributes != nil {
				t.Fatalf("got %#v and %#v, want nil", start.TagList, start.Attributes)
			}
		})
	}
}

// Equal values have equal bytes, whatever the order of their maps.
func TestMarshalIsDeterministic(t *testing.T) {
	many := make(map[string]string)
	for i := range 50 {
		many[fmt.Sprint("key", i)] = "v"
	}
	for _, enc := range encodings {
		first, err := enc.marshal(&schemas.StartRequest{Attributes: many})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			b, err := enc.marshal(&schemas.StartRequest{Attributes: many})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(b, first) {
				t.Fatalf("%s: two encodings of one value differ", enc.name)
			}
		}
	}
}

// A body of a later version of the program may hold fields that this one does not know, at any depth.
func TestUnknownFieldsAreIgnored(t *testing.T) {
	for name, v := range everything(t) {
		t.Run(name+"/msgpack", func(t *testing.T) {
			b, err := schemas.MarshalNamed(v)
			if err != nil {
				t.Fatal(err)
			}
			var generic any
			if err := msgpack.Unmarshal(b[1:], &generic); err != nil {
				t.Fatal(err)
			}
			if b, err = msgpack.Marshal(extend(generic)); err != nil {
				t.Fatal(err)
			}
			decodeSame(t, append([]byte{schemas.Version}, b...), v)
		})
		t.Run(name+"/json", func(t *testing.T) {
			b, err := schemas.MarshalJSON(v)
			if err != nil {
				t.Fatal(err)
			}
			var generic map[string]json.RawMessage
			if err := json.Unmarshal(b, &generic); err != nil {
				t.Fatal(err)
			}
			generic["zz-later"] = json.RawMessage(`{"deep":[{"v":2}]}`)
			if b, err = json.Marshal(generic); err != nil {
				t.Fatal(err)
			}
			decodeSame(t, b, v)
		})
	}
}

// extend adds an unknown field to every map, and an unknown fifth field to every event.
func extend(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v["k1"] == nil { // attributes of the user are no fields
			for k := range v {
				v[k] = extend(v[k])
			}
			v["zz-later"] = map[string]any{"deep": []any{1, "x", map[string]any{}}}
		}
	case []any:
		for i := range v {
			v[i] = extend(v[i])
		}
		if len(v) == 4 {
			if _, ok := v[3].(map[string]any); ok {
				return append(v, map[string]any{"later": []any{1}})
			}
		}
	}
	return v
}

func decodeSame(t *testing.T, body []byte, want any) {
	t.Helper()
	got := reflect.New(reflect.TypeOf(want).Elem()).Interface()
	if err := schemas.Unmarshal(body, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("unknown fields changed it (-want +got):\n%s", diff)
	}
}
