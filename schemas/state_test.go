package schemas_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/droverhq/drover/schemas"
)

func TestStateKey(t *testing.T) {
	for _, tt := range []struct{ scope, key, want string }{
		{"", "count", "=.count"}, {"host 1", "a.b", "host=201.a=2Eb"}, {"=", "é", "=3D.=C3=A9"},
	} {
		if got := schemas.StateKey(tt.scope, tt.key); got != tt.want {
			t.Errorf("scope %q, key %q: got %q, want %q", tt.scope, tt.key, got, tt.want)
		}
	}
}

func TestStateLock(t *testing.T) {
	for key, want := range map[string]string{"lock-L": "L", "lock-a b": "a b", "lock-": "", "lock": "", "my-lock-L": "", "": ""} {
		if got, ok := schemas.StateLock(key); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", key, got, ok, want)
		}
		if want != "" && schemas.LockState(want) != key {
			t.Errorf("the key of lock %q is %q, want %q", want, schemas.LockState(want), key)
		}
	}
}

func TestValidateState(t *testing.T) {
	for _, tt := range []struct{ key, scope, want string }{
		{"k", "", ""}, {"k", "a scope", ""}, {"", "", "key: "}, {"a\nb", "", "key: "}, {"k", strings.Repeat("x", 257), "scope: "},
	} {
		err := schemas.ValidateState(tt.key, tt.scope)
		if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, schemas.ErrInvalidName) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%q, %q: got %v, want %q", tt.key, tt.scope, err, tt.want)
		}
	}
}

const goodState = `{"v":1,"key":"k","value":{"a":1},"at":"2026-01-01T00:00:00Z","by":{"workflowId":"a","run":"r","eventId":5},` +
	`"unsettled":[{"workflowId":"b","run":"r","eventId":7,"revision":3},{"workflowId":"a","run":"r","eventId":5}]}`

func TestParseState(t *testing.T) {
	r, err := schemas.ParseState("=.k", []byte(goodState))
	if err != nil || string(r.Value) != `{"a":1}` || r.By.EventID != 5 || len(r.Unsettled) != 2 || r.Unsettled[0].Revision != 3 {
		t.Fatalf("got %+v, %v", r, err)
	}
	for what, change := range map[string][2]string{
		"no JSON":         {`"key"`, `key`},
		"another key":     {`"key":"k"`, `"key":"l"`},
		"another scope":   {`"key":"k"`, `"key":"k","scope":"s"`},
		"a nameless one":  {`"workflowId":"b"`, `"workflowId":""`},
		"one of no run":   {`"run":"r","eventId":7`, `"eventId":7`},
		"one of no event": {`"eventId":7`, `"eventId":0`},
		"a newer version": {`"v":1`, `"v":9`},
	} {
		bad := strings.Replace(goodState, change[0], change[1], 1)
		if bad == goodState {
			t.Fatalf("%s: nothing changed", what)
		}
		if r, err := schemas.ParseState("=.k", []byte(bad)); err == nil {
			t.Errorf("%s: got %+v, want an error", what, r)
		}
	}
}

func FuzzParseState(f *testing.F) {
	f.Add("=.k", []byte(goodState))
	f.Add("s.k", []byte(`{"key":"k","scope":"s","value":null,"cleared":true}`))
	f.Add("s.k", []byte("\x83\xa3key\xa1k"))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		r, err := schemas.ParseState(key, value)
		if err != nil {
			return
		}
		b, err := schemas.MarshalJSON(r)
		if err != nil {
			t.Fatalf("%q parses, and cannot be written: %v", value, err)
		}
		if _, err := schemas.ParseState(key, b); err != nil {
			t.Fatalf("%q parses, and as %s does not: %v", value, b, err)
		}
	})
}
