package decider

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/droverhq/drover/schemas"
)

// The deadline is an instant of the broker's clock, which the worker's may not agree with.
func TestLimit(t *testing.T) {
	asked := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) // by the broker's clock
	const s = time.Second
	for name, c := range map[string]struct {
		deadline time.Duration // after asked; 0 is none
		newest   time.Duration // the newest event, before asked; -1 shows none
		ahead    time.Duration // the worker's clock
		waited   time.Duration // in the worker's queue
		timeout  time.Duration
		want     time.Duration // after the task's arrival; 0 is no limit
		cause    error
	}{
		"no limit":                              {0, 0, 0, 0, 0, 0, nil},
		"timeout alone":                         {0, 0, 0, 2 * s, 5 * s, 7 * s, ErrTimeout},
		"deadline alone":                        {10 * s, 0, 0, 0, 0, 10 * s, ErrDeadline},
		"timeout first":                         {10 * s, 0, 0, 0, 5 * s, 5 * s, ErrTimeout},
		"deadline first":                        {10 * s, 0, 0, 8 * s, 5 * s, 10 * s, ErrDeadline},
		"waited beyond the deadline":            {10 * s, 0, 0, 20 * s, 0, 10 * s, ErrDeadline},
		"clock a little ahead":                  {10 * s, 0, 2 * s, 0, 0, 8 * s, ErrDeadline},
		"clock far ahead":                       {10 * s, 0, time.Hour, 0, 0, 10 * s, ErrDeadline},
		"clock far ahead, overrun":              {10 * s, 0, time.Hour, 20 * s, 0, 10 * s, ErrDeadline},
		"clock far behind":                      {10 * s, 0, -time.Hour, 0, 0, 10 * s, ErrDeadline},
		"clock far behind, nothing to go by":    {10 * s, -1, -time.Hour, 0, 0, time.Hour + 10*s, ErrDeadline},
		"the run waited for a decider for long": {10 * s, time.Hour, 0, 0, 0, 10 * s, ErrDeadline},
		"nothing to go by, deadline passed":     {10 * s, -1, time.Hour, 0, 0, 10*s - time.Hour, ErrDeadline},
	} {
		t.Run(name, func(t *testing.T) {
			dt := &schemas.DecisionTask{}
			if c.deadline != 0 {
				dt.Deadline = schemas.At(asked.Add(c.deadline))
			}
			if c.newest >= 0 {
				dt.Events = []schemas.Event{{ID: 1, Time: schemas.At(asked.Add(-c.newest))}}
			}
			arrived := asked.Add(c.ahead)
			until, cause := limit(dt, arrived, arrived.Add(c.waited), c.timeout)
			if !errors.Is(cause, c.cause) || (c.cause == nil) != (cause == nil) {
				t.Errorf("got cause %v, want %v", cause, c.cause)
			}
			if until.IsZero() != (c.want == 0) || c.want != 0 && until.Sub(arrived) != c.want {
				t.Errorf("got %v after arrival, want %v", until.Sub(arrived), c.want)
			}
		})
	}
}

func TestClip(t *testing.T) {
	for in, want := range map[string]string{
		"":          "",
		"short":     "short",
		"12345678":  "12345678",
		"123456789": "12345…",
		"1234éé78":  "1234…",
		"1\xff":     "1\uFFFD",
	} {
		got := clip(in, 8)
		if got != want || len(got) > 8+len("\uFFFD") || !utf8.ValidString(got) {
			t.Errorf("clip(%q) is %q, want %q", in, got, want)
		}
	}
	if got := clip(strings.Repeat("é", 3000), maxReason); len(got) > maxReason || !utf8.ValidString(got) {
		t.Errorf("%d bytes", len(got))
	}
}
