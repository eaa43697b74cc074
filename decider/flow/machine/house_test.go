package machine_test

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/droverhq/drover/decider/flow/condition"
	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/google/go-cmp/cmp"
)

// service is a little of what answers a run: state keys, timers and locks.
type service struct {
	t     *testing.T
	keys  map[string]any
	now   time.Time
	ended *machine.Action
}

// answer does what an action asks for.
func (s *service) answer(a machine.Action) (machine.Input, bool) {
	switch a.Do {
	case machine.Acquire:
		return machine.Input{Kind: machine.Granted, ID: a.ID}, true
	case machine.StartTimer:
		s.now = s.now.Add(a.Delay)
		return machine.Input{Kind: machine.Fired, ID: a.ID}, true
	case machine.ReadState:
		return machine.Input{Kind: machine.Result, ID: a.ID, Value: s.keys[a.Name]}, true
	case machine.ClearState:
		delete(s.keys, a.Name)
		return machine.Input{Kind: machine.Result, ID: a.ID}, true
	case machine.WriteState:
		if a.Require != nil {
			c, err := condition.Parse(a.Require)
			if err != nil {
				s.t.Fatal(err)
			}
			subject := condition.Subject{}
			if v, ok := s.keys[a.Name]; ok {
				subject = condition.Value(v)
			}
			ok, err := c.Eval(expr.NewEnv(nil, nil), subject)
			if err != nil {
				s.t.Fatal(err)
			}
			if !ok {
				return machine.Input{Kind: machine.Refused, ID: a.ID}, true
			}
		}
		s.keys[a.Name] = a.Value
		return machine.Input{Kind: machine.Result, ID: a.ID}, true
	case machine.Complete, machine.Fail, machine.Cancel:
		s.ended = &a
	}
	return machine.Input{}, false
}

// answerAll does what is asked for, in order.
func (s *service) answerAll(actions []machine.Action) []machine.Input {
	var in []machine.Input
	for _, a := range actions {
		if one, ok := s.answer(a); ok {
			in = append(in, one)
		}
	}
	return in
}

// states runs to the end and returns the state after each decision. Each decision is made twice, as after a crash before its answer
// was committed, and must be the same.
func (s *service) states(p *machine.Program, b machine.Begin, most int) [][]byte {
	s.t.Helper()
	st, actions, err := machine.Start(p, b, s.now, half)
	if err != nil {
		s.t.Fatal(err)
	}
	var all [][]byte
	for range most {
		data, err := run.Encode(st)
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, data)
		in := s.answerAll(actions)
		if s.ended != nil {
			return all
		}
		first, again := read(s.t, data), read(s.t, data)
		if actions, err = machine.Step(p, first, in, s.now, half); err != nil {
			s.t.Fatal(err)
		}
		repeat, err := machine.Step(p, again, in, s.now, half)
		if err != nil {
			s.t.Fatal(err)
		}
		one, err := run.Encode(first)
		if err != nil {
			s.t.Fatal(err)
		}
		two, err := run.Encode(again)
		if err != nil {
			s.t.Fatal(err)
		}
		if diff := cmp.Diff(actions, repeat); diff != "" || !bytes.Equal(one, two) {
			s.t.Fatalf("a decision that is repeated differs:\n%s\n%s\n%s", diff, one, two)
		}
		st = first
	}
	return all
}

func read(t *testing.T, data []byte) *run.State {
	t.Helper()
	s, err := run.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func compile(t testing.TB, text string) *machine.Flow {
	t.Helper()
	d, err := model.Parse("", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := machine.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func part(t testing.TB, f *machine.Flow, key string) *machine.Program {
	t.Helper()
	p, err := f.Program(key)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A0-13: the increment under a lock ends with count+1 wherever it stops and is resumed, whether or not the last request was done.
func TestA013IncrementIsExact(t *testing.T) {
	text, err := os.ReadFile("../model/testdata/examples/locked-increment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := part(t, compile(t, string(text)), "0")
	whole := &service{t: t, keys: map[string]any{"count": int64(41)}, now: begin}
	stops := len(whole.states(p, machine.Begin{}, 100))
	if got := whole.keys["count"]; got != int64(42) {
		t.Fatalf("without a crash: count is %v, want 42", got)
	}
	if stops < 4 {
		t.Fatalf("got %d decisions, want some to stop at", stops)
	}
	for stop := 1; stop < stops; stop++ {
		for _, done := range []bool{true, false} {
			for _, from := range []string{"end", "last"} {
				s := &service{t: t, keys: map[string]any{"count": int64(41)}, now: begin}
				before := map[string]any{"count": int64(41)}
				var states [][]byte
				if states = s.states(p, machine.Begin{}, stop); !done {
					s = &service{t: t, keys: before, now: begin}
					if stop > 1 {
						s.states(p, machine.Begin{}, stop-1)
					}
				}
				s.ended = nil
				s.states(p, machine.Begin{Replay: &machine.Origin{State: states[stop-1], From: from}}, 100)
				if s.ended == nil || s.ended.Do != machine.Complete || s.keys["count"] != int64(42) {
					t.Errorf("stopped after decision %d (its requests done: %v), replayed from %s: ended %+v with count %v, want 42", stop, done, from, s.ended, s.keys["count"])
				}
			}
		}
	}
}

// A0-14: what is remembered of retries does not grow.
func TestStateDoesNotGrow(t *testing.T) {
	p := part(t, compile(t, `
steps:
- let n = 0
- let text = some text that every instance shares with the others
- id: again
  step: let n = ${n} + 1
- {step: "set-state k = ${n}", on-error: retry limit 3 in 1s}
- {step: goto again, condition: {target: "${n}", less-than: 10000}}
`), "")
	s := &service{t: t, keys: map[string]any{}, now: begin}
	st, actions, err := machine.Start(p, machine.Begin{}, s.now, half)
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[int]int{}
	for i := 1; s.ended == nil; i++ {
		if actions, err = machine.Step(p, st, s.answerAll(actions), s.now, half); err != nil {
			t.Fatal(err)
		}
		if i == 10 || i == 100 || i == 9990 {
			data, err := run.Encode(st)
			if err != nil {
				t.Fatal(err)
			}
			sizes[i] = len(data)
			st = read(t, data)
		}
		s.answerEnd(actions)
	}
	if s.keys["k"] != int64(10000) {
		t.Errorf("k is %v, want 10000", s.keys["k"])
	}
	const digits = 40 // the numbers themselves get longer
	if sizes[9990] > sizes[10]+digits {
		t.Errorf("the state has %d bytes after 10 rounds and %d after 9990", sizes[10], sizes[9990])
	}
}

func (s *service) answerEnd(actions []machine.Action) {
	for _, a := range actions {
		if a.ID == "end" {
			s.ended = &a
		}
	}
}

func BenchmarkDecision(b *testing.B) {
	for _, rounds := range []int{10, 10_000} {
		b.Run(map[int]string{10: "after-10", 10_000: "after-10000"}[rounds], func(b *testing.B) {
			p := part(b, compile(b, "steps:\n- let n = 0\n- {id: a, step: 'let n = ${n} + 1'}\n- set-state k = ${n}\n- goto a\n"), "")
			st, actions, err := machine.Start(p, machine.Begin{}, begin, half)
			if err != nil {
				b.Fatal(err)
			}
			answer := func() []machine.Input { return []machine.Input{{Kind: machine.Result, ID: actions[len(actions)-1].ID}} }
			for range rounds {
				if actions, err = machine.Step(p, st, answer(), begin, half); err != nil {
					b.Fatal(err)
				}
			}
			data, err := run.Encode(st)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				s, err := run.Decode(data)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := machine.Step(p, s, answer(), begin, half); err != nil {
					b.Fatal(err)
				}
				if _, err := run.Encode(s); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(data)), "state-bytes")
		})
	}
}

// A loop of thousands at once is begun in several decisions, none of which is too large.
func TestManyChildren(t *testing.T) {
	p := part(t, compile(t, "steps:\n- {type: foreach, target: 1..3000, target_var_name: n, concurrency: all, steps: [no-op]}\n- transform n = ${output} | size\n- return ${n}\n"), "")
	st, actions, err := machine.Start(p, machine.Begin{}, begin, half)
	if err != nil {
		t.Fatal(err)
	}
	children := 0
	var open []machine.Input
	for len(actions) != 1 || actions[0].Do != machine.Complete {
		if len(actions) > machine.MaxActions+10 {
			t.Fatalf("a decision has %d actions, want %d or a few more", len(actions), machine.MaxActions)
		}
		var in []machine.Input
		for _, a := range actions {
			switch a.Do {
			case machine.StartChild:
				children++
				open = append(open, machine.Input{Kind: machine.Result, ID: a.ID})
			case machine.StartTimer:
				in = append(in, machine.Input{Kind: machine.Fired, ID: a.ID})
			}
		}
		if len(open) > 1000 {
			t.Fatalf("%d children are open, and no run may have more than 1000", len(open))
		}
		if len(in) == 0 {
			if in, open = open, nil; len(in) == 0 {
				t.Fatalf("%d children were started, and nothing is waited for: %+v", children, actions)
			}
		}
		if actions, err = machine.Step(p, st, in, begin, half); err != nil {
			t.Fatal(err)
		}
	}
	if children != 3000 || actions[0].Value != int64(3000) {
		t.Errorf("%d children were started, want 3000, and the size of the list is %v", children, actions[0].Value)
	}
}

// Thousands of lines in the log do not make one decision too large either.
func TestManyLines(t *testing.T) {
	p := part(t, compile(t, "steps:\n- let n = 0\n- {id: a, step: 'log line ${n}'}\n- let n = ${n} + 1\n- {step: goto a, condition: {target: '${n}', less-than: 2000}}\n"), "")
	s := &service{t: t, keys: map[string]any{}, now: begin}
	if decisions := len(s.states(p, machine.Begin{}, 100)); decisions != 4 && decisions != 5 {
		t.Errorf("2000 lines took %d decisions", decisions)
	}
	if s.ended == nil || s.ended.Do != machine.Complete {
		t.Errorf("the run ended with %+v", s.ended)
	}
}
