package schemas_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/droverhq/drover/schemas"
)

func TestLockKey(t *testing.T) {
	for _, tt := range []struct{ scope, lock, want string }{
		{"", "apt-get", "=.apt-get"},
		{"host 1", "apt.get", "host=201.apt=2Eget"},
		{"=", "é", "=3D.=C3=A9"},
	} {
		if got := schemas.LockKey(tt.scope, tt.lock); got != tt.want {
			t.Errorf("scope %q, lock %q: got %q, want %q", tt.scope, tt.lock, got, tt.want)
		}
	}
}

func TestValidateLock(t *testing.T) {
	for _, tt := range []struct{ lock, scope, want string }{
		{"L", "", ""}, {"L", "a scope", ""}, {"", "", "lock: "}, {"a\nb", "", "lock: "}, {"L", strings.Repeat("x", 257), "scope: "},
	} {
		err := schemas.ValidateLock(tt.lock, tt.scope)
		if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, schemas.ErrInvalidName) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%q, %q: got %v, want %q", tt.lock, tt.scope, err, tt.want)
		}
	}
}

const goodLock = `{"v":1,"lock":"L","limit":2,"next":9,"holders":[{"workflowId":"a","run":"r","eventId":5,"fence":7,"since":"2026-01-01T00:00:00Z"}],` +
	`"waiters":[{"workflowId":"b","run":"r","eventId":5,"since":"2026-01-01T00:00:00Z"}]}`

func TestParseLock(t *testing.T) {
	r, err := schemas.ParseLock("=.L", []byte(goodLock))
	if err != nil || r.Holders[0].Fence != 7 || r.Waiters[0].WorkflowID != "b" {
		t.Fatalf("got %+v, %v", r, err)
	}
	for what, change := range map[string][2]string{
		"no JSON":           {`"lock"`, `lock`},
		"another lock":      {`"lock":"L"`, `"lock":"M"`},
		"no limit":          {`"limit":2`, `"limit":0`},
		"a huge limit":      {`"limit":2`, `"limit":1001`},
		"a fence too high":  {`"next":9`, `"next":7`},
		"equal fences":      {`"holders":[`, `"holders":[{"workflowId":"z","run":"r","eventId":5,"fence":7,"since":"2026-01-01T00:00:00Z"},`},
		"falling fences":    {`"holders":[`, `"holders":[{"workflowId":"z","run":"r","eventId":5,"fence":8,"since":"2026-01-01T00:00:00Z"},`},
		"a holder of none":  {`"fence":7,`, ``},
		"a waiter's fence":  {`"eventId":5,"since":"2026-01-01T00:00:00Z"}]}`, `"eventId":5,"fence":8,"since":"2026-01-01T00:00:00Z"}]}`},
		"a nameless waiter": {`"workflowId":"b"`, `"workflowId":""`},
		"a newer version":   {`"v":1`, `"v":9`},
	} {
		bad := strings.Replace(goodLock, change[0], change[1], 1)
		if bad == goodLock {
			t.Fatalf("%s: nothing changed", what)
		}
		if r, err := schemas.ParseLock("=.L", []byte(bad)); err == nil {
			t.Errorf("%s: got %+v, want an error", what, r)
		}
	}
}

func FuzzParseLock(f *testing.F) {
	f.Add("=.L", []byte(goodLock))
	f.Add("=.L", []byte(`{"lock":"L","limit":1,"holders":null}`))
	f.Add("s.L", []byte("\x83\xa4lock\xa1L"))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		r, err := schemas.ParseLock(key, value)
		if err != nil {
			return
		}
		b, err := schemas.MarshalJSON(r)
		if err != nil {
			t.Fatalf("%q parses, and cannot be written: %v", value, err)
		}
		if _, err := schemas.ParseLock(key, b); err != nil {
			t.Fatalf("%q parses, and as %s does not: %v", value, b, err)
		}
	})
}
