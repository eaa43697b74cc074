package schemas_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/droverhq/drover/schemas"
)

// What is encoded to be sent at once is what is encoded to be kept, and errors come back.
func TestMarshalTo(t *testing.T) {
	reply := &schemas.DecisionReply{Token: "t", Context: bytes.Repeat([]byte("context "), 40), Decisions: []schemas.Decision{}}
	for _, v := range []any{reply, &schemas.Record{WorkflowID: "w", Run: "r", First: 1}, map[string]int{"a": 1}} {
		want, err := schemas.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		if err := schemas.MarshalTo(v, func(b []byte) error { got = bytes.Clone(b); return nil }); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%T: got %q, %v; want %q", v, got, err, want)
		}
		if want, err = schemas.MarshalJSON(v); err != nil {
			t.Fatal(err)
		}
		if err := schemas.MarshalJSONTo(v, func(b []byte) error { got = bytes.Clone(b); return nil }); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%T in JSON: got %q, %v; want %q", v, got, err, want)
		}
	}
	refuse := func([]byte) error { return bytes.ErrTooLarge }
	never := func([]byte) error { t.Error("used, though it cannot be encoded"); return nil }
	for name, to := range map[string]func(any, func([]byte) error) error{"msgpack": schemas.MarshalTo, "JSON": schemas.MarshalJSONTo} {
		if err := to(reply, refuse); err != bytes.ErrTooLarge {
			t.Errorf("%s: got %v, want the error of who sends", name, err)
		}
		if err := to(make(chan int), never); err == nil {
			t.Errorf("%s: a channel was encoded", name)
		}
	}
}

// A record that was unpacked in borrowed memory keeps nothing of it: the next one is unpacked over it.
func TestUnpackedRecordsAreTheirOwn(t *testing.T) {
	record := func(fill string) *schemas.Record {
		return &schemas.Record{WorkflowID: fill, Run: fill, First: 1, Previous: []byte(fill), Snapshot: bytes.Repeat([]byte(fill), 30), Events: []schemas.Event{
			{ID: 1, Attributes: &schemas.WorkflowStarted{WorkflowType: fill, Input: bytes.Repeat([]byte(fill), 30), Identity: fill}},
		}}
	}
	var bodies [][]byte
	for _, fill := range []string{"first---", "second--"} {
		b, err := schemas.Marshal(record(fill))
		if err != nil || !schemas.IsPacked(b) {
			t.Fatalf("a record of repetitions: packed is %v, %v", schemas.IsPacked(b), err)
		}
		bodies = append(bodies, b)
	}
	for range 100 { // the memory is lent by a pool, to whoever comes
		var first, second schemas.Record
		if err := schemas.Unmarshal(bodies[0], &first); err != nil {
			t.Fatal(err)
		}
		if err := schemas.Unmarshal(bodies[1], &second); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(record("first---"), &first); diff != "" {
			t.Fatalf("the first record after the second (-want +got):\n%s", diff)
		}
	}
}

// What is decoded of a body that is given away points into it, and says the same. Who appends to a payload writes into no other.
func TestOwnedBodies(t *testing.T) {
	for _, m := range w1() {
		body := marshalW1(t, m.message, m.json)
		fresh := func() any { return reflect.New(reflect.TypeOf(m.message).Elem()).Interface() }
		got := fresh()
		if err := schemas.UnmarshalOwned(bytes.Clone(body), got); err != nil || !cmp.Equal(m.message, got, cmpopts.EquateEmpty()) {
			t.Errorf("%s: %v %s", m.name, err, cmp.Diff(m.message, got))
		}
		copied := testing.AllocsPerRun(20, func() { _ = schemas.Unmarshal(body, fresh()) })
		if owned := testing.AllocsPerRun(20, func() { _ = schemas.UnmarshalOwned(body, fresh()) }); owned > 0.7*copied {
			t.Errorf("%s: %v allocations, %v with copies: want at most 0.7 of them", m.name, owned, copied)
		}
	}
	for _, marshal := range []func(any) ([]byte, error){schemas.Marshal, schemas.MarshalJSON} {
		want := &schemas.StartRequest{WorkflowID: "w", Type: "t", Input: schemas.Text(`"one"`), Identity: "after it"}
		body, err := marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got schemas.StartRequest
		if err := schemas.UnmarshalOwned(body, &got); err != nil {
			t.Fatal(err)
		}
		got.Input = append(got.Input, "0123456789012345678901234567890123456789"...)[:len(want.Input)]
		if diff := cmp.Diff(want, &got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("after an append (-want +got):\n%s", diff)
		}
	}
}
