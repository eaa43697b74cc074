package main

import (
	"testing"

	"github.com/droverhq/drover/schemas"
)

func TestProgressIsReadAsItWasWritten(t *testing.T) {
	for name, p := range map[string]progress{
		"steps":                 {job: job{Kind: "seq", N: 3, Payload: "payload"}, Scheduled: 2, Closed: 1},
		"a sleeper":             {job: job{Kind: "sleep", N: 1, Millis: 25_920_000_000, Payload: "p"}, Scheduled: 1},
		"spaces in the payload": {job: job{Kind: "seq", N: 3, Payload: " a b "}},
		"no payload":            {job: job{Kind: "signals", N: 2000}},
	} {
		if got, err := readProgress(p.text()); err != nil || got != p {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, p)
		}
		if c, err := schemas.JSONPayload(p); err != nil {
			t.Error(err)
		} else if got, err := readProgress(c); err != nil || got != p {
			t.Errorf("%s, in JSON: got %+v, %v, want %+v", name, got, err, p)
		}
	}
	if p, err := readProgress(nil); err != nil || p != (progress{}) {
		t.Errorf("of no context: got %v, %v", p, err)
	}
	for _, c := range []string{"1 2 3", "x 0 3 0 seq p", `{"kind":7}`} {
		if p, err := readProgress(schemas.Payload(c)); err == nil {
			t.Errorf("%q: got %v, want an error", c, p)
		}
	}
}
