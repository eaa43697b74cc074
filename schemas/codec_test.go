package schemas_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

func TestUnmarshalRefuses(t *testing.T) {
	nested := func(n int) string { return `{"details":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
	for _, tt := range []struct {
		name, body string
		want       error
		hint       string
	}{
		{"nothing", "", schemas.ErrEmpty, "empty"},
		{"version 0", "\x00\x80", schemas.ErrVersion, "0x00"},
		{"version 2", "\x02\x80", schemas.ErrVersion, "want 0x01"},
		{"version 7", "\x07\x80", schemas.ErrVersion, "want 0x01"},
		{"msgpack without version", "\x81\xa5token\xa1t", schemas.ErrVersion, "0x81"},
		{"text", "hello", schemas.ErrVersion, "it begins with 'h'; want one JSON object"},
		{"JSON array", "[1]", schemas.ErrVersion, "it begins with '['; want one JSON object"},
		{"JSON null", "null", schemas.ErrVersion, ""},
		{"only space", " \n", schemas.ErrVersion, ""},
		{"byte order mark", "\ufeff{}", schemas.ErrVersion, ""},
		{"version alone", "\x01", schemas.ErrMalformed, "cut short"},
		{"five bytes", "\x01\xdd\xff\xff\xff\xff", schemas.ErrMalformed, "4294967295 elements"},
		{"msgpack of another shape", "\x01\xa1x", schemas.ErrMalformed, ""},
		{"msgpack with a field of another type", "\x01\x81\xa5token\x92\x01\x02", schemas.ErrMalformed, ""},
		{"array of another length", "\x01\x91\x01", schemas.ErrMalformed, ""},
		{"JSON of a later version", `{"v":2,"token":"t"}`, schemas.ErrVersion, `"v" is 2; want 1`},
		{"JSON of version 0", `{"v":0}`, schemas.ErrVersion, ""},
		{"JSON with a text as version", `{"v":"1"}`, schemas.ErrMalformed, ""},
		{"cut JSON", `{"token":"t"`, schemas.ErrMalformed, ""},
		{"JSON and more", `{"token":"t"}{}`, schemas.ErrMalformed, ""},
		{"JSON with a field of another type", `{"token":7}`, schemas.ErrMalformed, "token"},
		{"JSON bomb", nested(100_000), schemas.ErrMalformed, "nested deeper"},
		{"JSON one too deep", nested(8 * schemas.MaxDepth), schemas.ErrMalformed, "nested deeper"},
		{"JSON bomb of objects", strings.Repeat(`{"a":`, 5000), schemas.ErrMalformed, "nested deeper"},
		{"JSON bomb after a string", `{"a":"\\\"[[","details":` + strings.Repeat("[", 5000), schemas.ErrMalformed, "nested deeper"},
		{"too large", "\x01\xc6" + strings.Repeat("\x00", schemas.MaxBody), schemas.ErrMalformed, "exceed the limit"},
		{"too large JSON", "{" + strings.Repeat(" ", schemas.MaxBody), schemas.ErrMalformed, "exceed the limit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var v schemas.Heartbeat
			err := schemas.Unmarshal([]byte(tt.body), &v)
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.hint) {
				t.Fatalf("got %v, want %v that holds %q", err, tt.want, tt.hint)
			}
			if later := tt.name == "version 7" || tt.name == "JSON of a later version"; errors.Is(err, schemas.ErrLater) != later {
				t.Fatalf("a later version may have written it: got %v, want %v", !later, later)
			}
		})
	}
}

func TestUnmarshalAccepts(t *testing.T) {
	for name, body := range map[string]string{
		"msgpack":              "\x01\x81\xa5token\xa1t",
		"msgpack as an array":  "\x01\x93\x00\xa1t\xc0",
		"JSON":                 `{"token":"t"}`,
		"JSON with version":    `{"v":1,"token":"t"}`,
		"JSON after space":     "\r\n\t {\"token\":\"t\"}",
		"JSON with deep input": `{"token":"t","zz":` + strings.Repeat("[", 8*schemas.MaxDepth-1) + strings.Repeat("]", 8*schemas.MaxDepth-1) + `}`,
		"v inside a payload":   `{"token":"t","zz":{"v":2}}`,
		"brackets in a string": `{"token":"t","zz":"` + strings.Repeat(`[{\"`, 5000) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			var v schemas.Heartbeat
			if err := schemas.Unmarshal([]byte(body), &v); err != nil || v.Token != "t" {
				t.Fatalf("got %+v, %v", v, err)
			}
		})
	}
}

func TestErrorsOfEventsAndDecisionsNameThem(t *testing.T) {
	for body, want := range map[string]string{
		`{"events":[{"id":7,"type":"Signal","attributes":{"signalName":1}}]}`:                "event 7 Signal",
		"\x01\x81\xa6events\x91\x94\x07\xa6Signal\x00\x81\xaasignalName\x91\x01":             "event 7 Signal",
		"\x01\x81\xa6events\x91\x93\x07\xa6Signal\x00":                                       "3 fields, want 4",
		`{"decisions":[{"type":"CancelTimer","attributes":{"timerId":1}}]}`:                  "decision CancelTimer",
		"\x01\x81\xa9decisions\x91\x82\xa4type\xabCancelTimer\xaaattributes\x93\x01\x02\x03": "decision CancelTimer",
	} {
		var v struct {
			Events    []schemas.Event    `json:"events"`
			Decisions []schemas.Decision `json:"decisions"`
		}
		if err := schemas.Unmarshal([]byte(body), &v); !errors.Is(err, schemas.ErrMalformed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want ErrMalformed that names %q", body, err, want)
		}
	}
}

func TestMarshalErrors(t *testing.T) {
	for _, enc := range encodings {
		if _, err := enc.marshal(make(chan int)); err == nil || !strings.Contains(err.Error(), "encode chan int") {
			t.Errorf("%s: got %v, want an error that names the type", enc.name, err)
		}
	}
	// The encoder of a failed call goes back to the pool, and the next one must not see its bytes.
	b, err := schemas.Marshal(&schemas.Heartbeat{Token: "t"})
	if err != nil || string(b) != "\x01\x81\xa5token\xa1t" {
		t.Fatalf("got %q, %v", b, err)
	}
}

// Bodies outlive the pools that made them.
func TestCodecIsSafeForConcurrentUse(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 200 {
				want := schemas.Heartbeat{Token: fmt.Sprint(i, "-", j), Details: schemas.Text(strings.Repeat("x", j+1))}
				b, err := schemas.Marshal(&want)
				if err != nil {
					t.Error(err)
					return
				}
				_ = schemas.Unmarshal([]byte("\x01\x81\xa9decisions\x91\x81\xaaattributes\xc1"), &schemas.DecisionReply{})
				var got schemas.Heartbeat
				if err := schemas.Unmarshal(b, &got); err != nil || !cmp.Equal(want, got) {
					t.Errorf("got %+v, %v; want %+v", got, err, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestIsJSON(t *testing.T) {
	for body, want := range map[string]bool{"{": true, " \t\r\n{}": true, "": false, " ": false, "[": false, "\x01{": false, "x{": false} {
		if got := schemas.IsJSON([]byte(body)); got != want {
			t.Errorf("%q: got %v, want %v", body, got, want)
		}
	}
}

func TestPositionOrder(t *testing.T) {
	for _, tt := range []struct {
		p, q schemas.Position
		want bool
	}{
		{schemas.Position{}, schemas.Position{}, false},
		{schemas.Position{Sequence: 1}, schemas.Position{Sequence: 2}, true},
		{schemas.Position{Sequence: 2}, schemas.Position{Sequence: 1}, false},
		{schemas.Position{Sequence: 9}, schemas.Position{Incarnation: 1, Sequence: 1}, true}, // refilled numbers of a new incarnation
		{schemas.Position{Incarnation: 2}, schemas.Position{Incarnation: 1, Sequence: 9}, false},
	} {
		if got := tt.p.Before(tt.q); got != tt.want {
			t.Errorf("%v before %v: got %v", tt.p, tt.q, got)
		}
		later := tt.p
		if tt.want {
			later = tt.q
		}
		if got := tt.p.Later(tt.q); got != later {
			t.Errorf("the later of %v and %v: got %v", tt.p, tt.q, got)
		}
	}
	if got := (&schemas.Record{First: 6, Events: s144()}).Last(); got != 10 {
		t.Fatalf("last: got %d, want 10", got)
	}
	if got := (&schemas.Record{First: 6}).Last(); got != 5 {
		t.Fatalf("last of an empty record: got %d, want 5", got)
	}
}

func TestError(t *testing.T) {
	err := fmt.Errorf("asked: %w", schemas.Errorf(schemas.CodeNotFound, "no run %s", "r").InField("run").WithHint("list them with %s", "drover list").About("w", "r"))
	if !errors.Is(err, &schemas.Error{Code: schemas.CodeNotFound}) || errors.Is(err, &schemas.Error{Code: schemas.CodeClosed}) {
		t.Fatal("an error is not found by its code")
	}
	if errors.Is(err, errors.New("x")) || errors.Is(err, &schemas.Error{Code: schemas.CodeNotFound, Message: "other"}) {
		t.Fatal("an error matches what it is not")
	}
	if got := err.Error(); got != "asked: no run r (list them with drover list)" {
		t.Fatalf("got %q", got)
	}
	if got := schemas.Errorf(schemas.CodeTimeout, "late").Error(); got != "late" {
		t.Fatalf("got %q", got)
	}
}
