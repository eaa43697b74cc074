package schemas_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/droverhq/drover/schemas"
)

// seed adds the golden bodies and the hostile ones.
func seed(f *testing.F, only ...string) {
	f.Helper()
	for _, body := range hostile() {
		if len(body) < 200 {
			f.Add(append([]byte{schemas.Version}, body...))
		}
	}
	for _, prefix := range only {
		files, err := filepath.Glob(filepath.Join("testdata", "golden", prefix+"*"))
		if err != nil || len(files) == 0 {
			f.Fatalf("no golden files %s*: %v", prefix, err)
		}
		for _, path := range files {
			b, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			if strings.HasSuffix(path, ".hex") {
				b = unhex(f, b)
			}
			f.Add(b)
		}
	}
}

// fuzzBody decodes any bytes as a message: it never panics, allocates in proportion, fails with an error of the body, and
// what it accepts survives another round trip.
func fuzzBody(f *testing.F, message any, seeds ...string) {
	seed(f, seeds...)
	f.Fuzz(func(t *testing.T, b []byte) {
		v := reflect.New(reflect.TypeOf(message).Elem()).Interface()
		var err error
		if n := allocated(func() { err = schemas.Unmarshal(b, v) }); n > 1<<20+maxAlloc(len(b)) {
			t.Fatalf("%d bytes allocated for %d", n, len(b))
		}
		checkPlan(t, b, message)
		own := reflect.New(reflect.TypeOf(message).Elem()).Interface()
		if owned := schemas.UnmarshalOwned(bytes.Clone(b), own); (owned == nil) != (err == nil) || err == nil && !cmp.Equal(v, own, cmpopts.EquateNaNs()) {
			t.Fatalf("of a body of its own: %v\n%s", owned, cmp.Diff(v, own))
		}
		if err != nil {
			if !errors.Is(err, schemas.ErrMalformed) && !errors.Is(err, schemas.ErrVersion) && !errors.Is(err, schemas.ErrEmpty) {
				t.Fatalf("got %v, want one of the errors of a body", err)
			}
			return
		}
		// The first encoding brings it into normal form; from then on nothing may change.
		first, err := schemas.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		again := reflect.New(reflect.TypeOf(message).Elem()).Interface()
		if err := schemas.Unmarshal(first, again); err != nil {
			t.Fatalf("%v\n%x", err, first)
		}
		second, err := schemas.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		if string(first) != string(second) {
			t.Fatalf("unstable encoding\n%x\n%x", first, second)
		}
	})
}

// checkPlan: what a plan accepts the library accepts, and reads the same.
func checkPlan(t *testing.T, b []byte, message any) {
	t.Helper()
	quick, library := schemas.Quick, schemas.Library
	switch {
	case schemas.IsJSON(b):
		quick, library = schemas.QuickJSON, func(b []byte, v any) error { return json.Unmarshal(b, v) }
	case len(b) == 0 || b[0] != schemas.Version:
		return
	}
	byPlan, byLibrary := reflect.New(reflect.TypeOf(message).Elem()).Interface(), reflect.New(reflect.TypeOf(message).Elem()).Interface()
	if !quick(b, byPlan) {
		return
	}
	if err := library(b, byLibrary); err != nil {
		t.Fatalf("a plan accepts what the library does not: %v\n%x", err, b)
	}
	if diff := cmp.Diff(byLibrary, byPlan, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()); diff != "" {
		t.Fatalf("(-library +plan):\n%s", diff)
	}
}

func FuzzScan(f *testing.F) {
	seed(f, "record", "report", "decision")
	f.Fuzz(func(t *testing.T, b []byte) { checkScan(t, b) })
}

func FuzzUnmarshalRecord(f *testing.F) { fuzzBody(f, &schemas.Record{}, "record", "events") }
func FuzzUnmarshalDecisionTask(f *testing.F) {
	fuzzBody(f, &schemas.DecisionTask{}, "decision-task")
}
func FuzzUnmarshalReport(f *testing.F) { fuzzBody(f, &schemas.Report{}, "report") }
func FuzzUnmarshalReply(f *testing.F)  { fuzzBody(f, &schemas.DecisionReply{}, "decision") }
func FuzzUnmarshalTask(f *testing.F)   { fuzzBody(f, &schemas.ActivityTask{}, "activity-task") }
func FuzzUnmarshalStart(f *testing.F)  { fuzzBody(f, &schemas.StartRequest{}, "start-request") }

// Whatever JSON is read as an event is written as JSON that reads as the same event.
func FuzzEventJSON(f *testing.F) {
	for _, e := range s144() {
		b, err := json.Marshal(e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"id":9,"type":"LaterEvent","time":null,"attributes":{"a":[1,{"$text":"x"}]}}`))
	f.Add([]byte(`{"id":9,"type":"TimerScheduled","attributes":{"timerId":"T","startToFireTimeout":"1h"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e, again schemas.Event
		if json.Unmarshal(b, &e) != nil {
			return
		}
		first, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(first, &again); err != nil {
			t.Fatalf("%v\n%s", err, first)
		}
		if second, err := json.Marshal(again); err != nil || string(first) != string(second) {
			t.Fatalf("unstable: %v\n%s\n%s", err, first, second)
		}
		if again.ID != e.ID || again.Type() != e.Type() || again.Time != e.Time {
			t.Fatalf("got %v, want %v", again, e)
		}
	})
}

func FuzzPayload(f *testing.F) {
	for _, s := range []string{
		"", "x", "null", " null", "{}", `{"$text":"x"}`, `{"$bytes":"AA=="}`, `{"$json":{"$text":"x"}}`, "\xff", "\"\xff\"", `"\ud800"`, "<&>",
		strings.Repeat("[", 400) + strings.Repeat("]", 400), `{"\u0024text":"x"}`,
		`{"$ref":"#/a"}`, `{"$ref":{}}`, string(schemas.RefPayload(&schemas.PayloadRef{Object: "o", Size: 1, Digest: strings.Repeat("a", 64)})),
		"\x00drover-ref\x00{}", `{"$ref":{"object":"o","size":1,"digest":"` + strings.Repeat("a", 64) + `","later":[1]}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if p := schemas.Payload(b); len(b) > 0 && strings.TrimSpace(string(b)) != "null" {
			checkPayload(t, p)
		}
		var p schemas.Payload
		if json.Unmarshal(b, &p) == nil && p != nil {
			checkPayload(t, p)
		}
	})
}
