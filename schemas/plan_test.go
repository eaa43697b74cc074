package schemas_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/droverhq/drover/schemas"
)

var seeds = flag.Uint64("seeds", 16, "how many random variants of each message are encoded and decoded")

// vary sets each field below v to its zero, to an edge of its kind, or to anything.
func vary(d *rand.Rand, v reflect.Value) {
	switch p := v.Addr().Interface().(type) {
	case *schemas.Attributes, *schemas.DecisionAttributes, *[]schemas.Event, *[]schemas.Decision:
		_ = p // filled by the caller
		return
	}
	if d.IntN(4) == 0 {
		v.SetZero()
		return
	}
	n := d.Uint64() >> d.IntN(64)
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.Repeat("é", int(n%140))) // the lengths of heads change at 32 and 256
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n) * int64(1-2*d.IntN(2)))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(n & (math.MaxUint64 >> (64 - v.Type().Bits())))
	case reflect.Float64:
		v.SetFloat(d.NormFloat64())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		vary(d, v.Elem())
	case reflect.Slice:
		length := []int{0, 1, 15, 16, 300}[d.IntN(5)]
		v.Set(reflect.MakeSlice(v.Type(), length, length))
		for i := range length {
			vary(d, v.Index(i))
		}
	case reflect.Map:
		m := map[string]string{}
		for i := range d.IntN(20) {
			m[strings.Repeat("k", i)] = "v"
		}
		v.Set(reflect.ValueOf(m))
	case reflect.Struct:
		for _, field := range v.Fields() {
			vary(d, field)
		}
	}
}

// varied returns messages of all types that have a plan, with events and decisions of all types in them.
func varied(t *testing.T, d *rand.Rand) []any {
	t.Helper()
	varyEvents := func() (all []schemas.Event) {
		for i, typ := range schemas.EventTypes() {
			a := attributesOf(t, typ)
			vary(d, reflect.ValueOf(a).Elem())
			all = append(all, schemas.Event{ID: int64(i+1) * int64(1+d.IntN(2)), Time: schemas.Timestamp(d.Int64() >> d.IntN(60)), Attributes: a})
		}
		return all
	}
	var all []any
	for _, m := range messages() {
		v := reflect.New(reflect.TypeOf(m).Elem())
		if !schemas.Planned(v.Interface()) {
			continue
		}
		vary(d, v.Elem())
		switch m := v.Interface().(type) {
		case *schemas.Record:
			m.Events = varyEvents()
		case *schemas.DecisionTask:
			m.Events = varyEvents()
		case *schemas.HistoryResponse:
			m.Events = varyEvents()
		case *schemas.DecisionReply:
			for _, typ := range schemas.DecisionTypes() {
				a := decisionOf(t, typ)
				vary(d, reflect.ValueOf(a).Elem())
				m.Decisions = append(m.Decisions, schemas.Decide(a))
			}
		}
		all = append(all, v.Interface())
	}
	return all
}

// The plans and the library write the same bytes, and read the same from them.
func TestPlansAgreeWithTheLibrary(t *testing.T) {
	for seed := range *seeds / 2 {
		for _, v := range varied(t, rand.New(rand.NewPCG(seed, 7))) {
			want, err := schemas.MarshalByLibrary(v)
			if err != nil {
				t.Fatal(err)
			}
			got, err := schemas.MarshalNamed(v)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("seed %d: %T: %v\ngot  %x\nwant %x", seed, v, err, got, want)
			}
			byPlan, byLibrary := reflect.New(reflect.TypeOf(v).Elem()).Interface(), reflect.New(reflect.TypeOf(v).Elem()).Interface()
			if !schemas.Quick(want, byPlan) {
				t.Fatalf("seed %d: the plan does not read what %T writes: %x", seed, v, want)
			}
			if err := schemas.Library(want, byLibrary); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(byLibrary, byPlan); diff != "" {
				t.Fatalf("seed %d: %T (-library +plan):\n%s", seed, v, diff)
			}
			owned := reflect.New(reflect.TypeOf(v).Elem()).Interface()
			if err := schemas.UnmarshalOwned(bytes.Clone(want), owned); err != nil || !cmp.Equal(byLibrary, owned) {
				t.Fatalf("seed %d: %T of a body of its own: %v", seed, v, err)
			}
			sameJSON(t, v)
		}
	}
}

// A compact record says what the record said, whatever is in it, and is never larger than the one with names.
func TestCompactRecords(t *testing.T) {
	for seed := range *seeds {
		d := rand.New(rand.NewPCG(seed, 9))
		for _, v := range varied(t, d) {
			want, ok := v.(*schemas.Record)
			if !ok {
				continue
			}
			compact, err := schemas.MarshalCompact(want)
			if err != nil {
				t.Fatal(err)
			}
			named, err := schemas.MarshalNamed(want)
			if err != nil || len(compact) >= len(named) {
				t.Fatalf("got %v, %d bytes, want fewer than %d", err, len(compact), len(named))
			}
			stored, err := schemas.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			for _, body := range [][]byte{compact, stored} {
				var got schemas.Record
				if err := schemas.Unmarshal(body, &got); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if diff := cmp.Diff(want, &got, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
				}
			}
			for n := range compact[:min(len(compact), 2000)] {
				if err := schemas.Unmarshal(compact[:n], new(schemas.Record)); err == nil {
					t.Fatalf("seed %d: cut after %d of %d bytes, and no error", seed, n, len(compact))
				}
			}
		}
	}
}

// What a later version adds to a compact record is ignored, and events that it adds are kept.
func TestCompactRecordsOfALaterVersion(t *testing.T) {
	body := "\x02\x85\x03\x07" + // first
		"\x7e\x92\x01\x02" + // a field of a number that no name has yet
		"\xcd\x01\x00\xc0" + "\xa5later\x80" + // one above 127, and one by its name
		"\x04\x93" + // events
		"\x95\x3f\x05\x82\x45\xa1s\x7f\xa1x\x00\x81\x01\x02" + // a signal with a field more, and one more in the array
		"\x93\xaaLaterEvent\x06\x81\xa1a\x01" +
		"\x93\xa6Signal\x00\x81\xaasignalName\xa1u" // a known type by its name
	var got schemas.Record
	if err := schemas.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	want := schemas.Record{First: 7, Events: []schemas.Event{
		{ID: 7, Time: 5, Attributes: &schemas.Signal{SignalName: "s"}},
		{ID: 8, Time: 11, Attributes: &schemas.Unknown{Type: "LaterEvent", Raw: []byte("\x81\xa1a\x01")}},
		{ID: 9, Time: 11, Attributes: &schemas.Signal{SignalName: "u"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	b, err := schemas.Marshal(&got)
	var again schemas.Record
	if err == nil {
		err = schemas.Unmarshal(b, &again)
	}
	if diff := cmp.Diff(got, again); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
}

// byName are the fields of records and events that came later than the numbers and are written by their names.
var byName = []string{
	"maximumInterruptions", "interruptions", "returned",
	"originRun", "originEventId", "unreadSignals",
	"startMode", "continuation", "after", "held", "reasons", "again",
	"final", "tell",
}

// The numbers are on disks: every name of a record and of an event has one, once, unless it is written by its name.
func TestWords(t *testing.T) {
	var names []string
	seen := map[string]bool{}
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice:
			walk(t.Elem())
		case reflect.Struct:
			if t == reflect.TypeFor[schemas.Event]() {
				return
			}
			for field := range t.Fields() {
				if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); !seen[name] {
					seen[name] = true
					names = append(names, name)
				}
				walk(field.Type)
			}
		}
	}
	walk(reflect.TypeFor[schemas.Record]())
	for _, typ := range schemas.EventTypes() {
		walk(reflect.TypeOf(attributesOf(t, typ)))
	}
	for _, name := range names {
		if !slices.Contains(schemas.RecordWords(), name) && !slices.Contains(byName, name) {
			t.Errorf("%q has no number; append it to words, or to byName", name)
		}
	}
	if n := len(schemas.RecordWords()); n > 127 || len(slices.Compact(slices.Sorted(slices.Values(schemas.RecordWords())))) != n {
		t.Errorf("%d words: one stands twice, or they need more than a byte", n)
	}
	if n := len(schemas.RecordEventTypes()); n > 127 || len(slices.Compact(slices.Sorted(slices.Values(schemas.RecordEventTypes())))) != n {
		t.Errorf("%d types: one stands twice, or they need more than a byte", n)
	}
}

// sameJSON: the plan and encoding/json write the same bytes, and read the same from them.
func sameJSON(t *testing.T, v any) {
	t.Helper()
	want, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	got, err := schemas.MarshalJSON(v)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%T: %v\ngot  %s\nwant %s", v, err, got, want)
	}
	byPlan, byLibrary := reflect.New(reflect.TypeOf(v).Elem()).Interface(), reflect.New(reflect.TypeOf(v).Elem()).Interface()
	if err := json.Unmarshal(want, byLibrary); err != nil {
		return // a random duration or version is not always one; the plan is silent about those
	}
	if !schemas.QuickJSON(want, byPlan) {
		if err := schemas.Unmarshal(want, byPlan); err != nil {
			return
		}
	}
	if diff := cmp.Diff(byLibrary, byPlan); diff != "" {
		t.Fatalf("%T (-library +plan):\n%s", v, diff)
	}
}

// A record is packed where that pays, and a packed one never makes a reader allocate out of proportion.
func TestPackedRecords(t *testing.T) {
	of := func(n int, text string) *schemas.Record {
		return &schemas.Record{First: 1, Events: []schemas.Event{{ID: 1, Attributes: &schemas.Marker{MarkerName: "m", Details: schemas.Text(strings.Repeat(text, n))}}}}
	}
	noise := make([]byte, 1000)
	for i, d := 0, rand.New(rand.NewPCG(1, 1)); i < len(noise); i++ {
		noise[i] = byte(d.Uint32())
	}
	for name, tt := range map[string]struct {
		record *schemas.Record
		packed bool
	}{
		"short": {of(10, "0123456789"), false}, "text": {of(100, "0123456789"), true}, "noise": {of(1, string(noise)), false}, "one byte": {of(100_000, "\x00"), false},
	} {
		b, err := schemas.Marshal(tt.record)
		if err != nil || schemas.IsPacked(b) != tt.packed {
			t.Errorf("%s: got %v, packed %v", name, err, !tt.packed)
		}
		var got schemas.Record
		if err := schemas.Unmarshal(b, &got); err != nil || !cmp.Equal(tt.record, &got) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, body := range []string{"\x03", "\x03\x00", "\x03\xff\xff\xff\x0f", "\x03\xff\xff\xff\x1f\x00\x00", "\x03\x80\x80\x01\x00\x80\xfe\x01\x00"} {
		if n := allocated(func() {
			if err := schemas.Unmarshal([]byte(body), new(schemas.Record)); !errors.Is(err, schemas.ErrMalformed) {
				t.Errorf("%q: got %v, want ErrMalformed", body, err)
			}
		}); n > 1<<16 {
			t.Errorf("%q: %d bytes allocated", body, n)
		}
	}
}
