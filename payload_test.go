package drover_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

func TestPayloads(t *testing.T) {
	c, s := newService(t, drover.Options{})
	var input schemas.Payload
	on(s, "signal", func(_ int, req schemas.SignalRequest) any { input = req.Input; return schemas.SignalResponse{} })
	on(s, "result", func(int, schemas.ExecutionRequest) any {
		return schemas.ResultResponse{Run: "r", Status: schemas.StatusCompleted, Result: input}
	})
	run := c.Run("a", "")
	for _, tt := range []struct {
		in   any
		want string
	}{
		{nil, ""},
		{"text", `"text"`},
		{12, "12"},
		{[]byte("raw"), "raw"},
		{schemas.Payload("raw"), "raw"},
		{json.RawMessage(`[1]`), `[1]`},
		{struct{ A int }{1}, `{"A":1}`},
	} {
		if err := run.Signal(t.Context(), "s", tt.in); err != nil {
			t.Fatal(err)
		}
		if string(input) != tt.want {
			t.Fatalf("%v: got payload %q, want %q", tt.in, input, tt.want)
		}
		var p schemas.Payload
		var b []byte
		for _, out := range []any{&p, &b, nil} {
			if err := run.Result(t.Context(), out); err != nil {
				t.Fatal(err)
			}
		}
		if string(p) != tt.want || string(b) != tt.want {
			t.Fatalf("got %q and %q, want %q", p, b, tt.want)
		}
	}
	var out struct{ A int }
	if err := run.Result(t.Context(), &out); err != nil || out.A != 1 {
		t.Fatalf("got %+v, %v", out, err)
	}
	var wrong int
	for _, out := range []any{&wrong, wrong, (*int)(nil), (*schemas.Payload)(nil), (*[]byte)(nil)} { // the caller's mistake, not the server's
		e := wantError(t, run.Result(t.Context(), out), drover.ErrInvalid)
		if m := e.Message(); !strings.Contains(m, "not the expected JSON") && !strings.Contains(m, "takes nothing") || e.Hint == "" {
			t.Fatalf("got %v", e)
		}
	}
}
