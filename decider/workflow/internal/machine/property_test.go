package machine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/workflow/internal/machine"
	"github.com/droverhq/drover/schemas"
)

// play is one execution of a random program: what it has begun and what it has seen.
type play struct {
	m       *machine.Machine
	futures []*machine.Future
	scopes  []*machine.Scope
	values  []*machine.Channel // between coroutines, with room for 0, 1 and 2
	seen    []string
}

func (p *play) see(format string, args ...any) {
	p.seen = append(p.seen, fmt.Sprintf(format, args...)+" at "+p.m.Now().Format("05"))
}

// step is a piece of a program.
type step func(p *play, s *machine.Scope)

// program draws one; some kinds of steps may be left out, in favor of the first ones.
func program(t *rapid.T, depth int, leftOut ...int) []step {
	var all []step
	for range rapid.IntRange(0, 5).Draw(t, "steps") {
		all = append(all, draw(t, depth, leftOut))
	}
	return all
}

func run(p *play, s *machine.Scope, all []step) {
	for _, f := range all {
		f(p, s)
	}
}

func draw(t *rapid.T, depth int, leftOut []int) step {
	n := rapid.IntRange(0, 3).Draw(t, "n")
	kind := rapid.IntRange(0, 20).Draw(t, "step")
	if depth == 0 {
		kind %= 17
	}
	if slices.Contains(leftOut, kind) {
		kind %= 7
	}
	switch kind {
	case 0: // call
		return func(p *play, s *machine.Scope) {
			f := p.m.Schedule(s, &schemas.ScheduleActivity{ActivityType: fmt.Sprint("act", n)})
			p.m.Wait(f.Name, f)
			p.see("%s %+v", f.Name, f.Outcome())
		}
	case 1: // start
		return func(p *play, s *machine.Scope) {
			p.futures = append(p.futures, p.m.Schedule(s, &schemas.ScheduleActivity{ActivityType: fmt.Sprint("act", n)}))
		}
	case 2: // sleep
		return func(p *play, s *machine.Scope) {
			f := p.m.Timer(s, schemas.At(p.m.Now().Add(time.Duration(n)*time.Second)))
			p.m.Wait(f.Name, f)
			p.see("%s %+v", f.Name, f.Outcome())
		}
	case 3: // a timer that is not waited for
		return func(p *play, s *machine.Scope) {
			p.futures = append(p.futures, p.m.Timer(s, schemas.At(p.m.Now().Add(time.Second))))
		}
	case 4: // the first of several
		return func(p *play, s *machine.Scope) {
			cases := []machine.Case{p.receives("signal", p.m.Signals("s"))}
			for k, f := range p.futures {
				cases = append(cases, machine.Case{On: f, Choose: func() { p.see("%d is ready", k) }})
			}
			for k, c := range p.values {
				if k != n {
					cases = append(cases, p.receives(fmt.Sprint("value ", k), c))
				}
			}
			if n < len(p.values) {
				cases = append(cases, machine.Case{To: p.values[n], Value: "selected", Choose: func() { p.see("sent %d", n) }})
			}
			p.see("selected: %v", p.m.Select("the first", s, cases))
		}
	case 5:
		return func(p *play, s *machine.Scope) { p.see("changed %v", p.m.Changed(fmt.Sprint("c", n))) }
	case 6:
		return func(p *play, s *machine.Scope) {
			p.see("once %s", p.m.Once("id", func() schemas.Payload { return schemas.Payload(fmt.Sprint(n)) }))
		}
	case 7: // cancel one
		return func(p *play, s *machine.Scope) {
			if len(p.futures) > n {
				p.futures[n].Cancel()
			}
		}
	case 8: // cancel a scope
		return func(p *play, s *machine.Scope) {
			if len(p.scopes) > n {
				p.scopes[n].Cancel(machine.ErrCanceled, nil)
			}
		}
	case 9: // a child, of an id that others may have, and perhaps left alone
		return func(p *play, s *machine.Scope) {
			a := &schemas.StartChild{WorkflowType: "kid"}
			if n > 0 {
				a.WorkflowID = fmt.Sprint("kid", n%2)
			}
			f := p.m.StartChild(s, a)
			if n == 3 {
				f.Abandon()
			}
			p.futures = append(p.futures, f)
		}
	case 10: // a child that is waited for until it has begun
		return func(p *play, s *machine.Scope) {
			f := p.m.StartChild(s, &schemas.StartChild{WorkflowType: "kid", Tell: true})
			p.futures = append(p.futures, f)
			begun, _ := p.m.WaitBegun(f)
			p.see("%s has begun: %v %+v", f.Name, begun, f.Outcome())
		}
	case 11: // a message to another workflow
		return func(p *play, s *machine.Scope) {
			f := p.m.Signal(s, &schemas.SignalExternal{WorkflowID: "other"})
			if n == 0 {
				f = p.m.RequestCancel(s, &schemas.CancelExternal{WorkflowID: "other"})
			}
			p.m.Wait(f.Name, f)
			p.see("%s %+v", f.Name, f.Outcome())
		}
	case 12: // a value for another coroutine
		return func(p *play, s *machine.Scope) {
			err := p.m.Select("to send", s, []machine.Case{{To: p.values[n%3], Value: n, Choose: func() {}}})
			p.see("sent %d: %v", n, err)
		}
	case 13: // a value from another coroutine
		return func(p *play, s *machine.Scope) {
			err := p.m.Select("to receive", s, []machine.Case{p.receives("value", p.values[n%3])})
			p.see("received: %v", err)
		}
	case 14: // a lock, which is kept or given back
		return func(p *play, s *machine.Scope) {
			a := &schemas.AcquireLock{Lock: fmt.Sprint("l", n%2)}
			f, err := p.m.Lock(s, a)
			fence, _ := f.Value()
			p.see("lock %d: %+v %v %v", n, f.Outcome(), fence, err)
			if n > 1 || f.Outcome().Kind != machine.Succeeded {
				return
			}
			timer := p.m.Timer(s, schemas.At(p.m.Now().Add(time.Second)))
			p.m.Wait(timer.Name, timer)
			p.m.Unlock(a)
		}
	case 15:
		return func(p *play, s *machine.Scope) { p.do(s, n, false) }
	case 16:
		return func(p *play, s *machine.Scope) { p.do(s, n, true) }
	case 17: // a coroutine
		body := program(t, depth-1, leftOut...)
		return func(p *play, s *machine.Scope) {
			p.futures = append(p.futures, p.m.Go(func() (any, error) { run(p, s, body); return nil, nil }))
		}
	case 18: // a scope in a coroutine
		body := program(t, depth-1, leftOut...)
		return func(p *play, s *machine.Scope) {
			inner := machine.NewScope(s)
			p.scopes = append(p.scopes, inner)
			p.futures = append(p.futures, p.m.Go(func() (any, error) { run(p, inner, body); return nil, nil }))
		}
	case 19: // what has come, without a wait
		return func(p *play, s *machine.Scope) {
			notes := p.m.Signals("s")
			for n > 0 && notes.ReadyNow() {
				v, _ := notes.Take()
				p.see("looked: %s of %d", v, notes.Len())
			}
			p.see("selected: %v", p.m.Select("the first", s, []machine.Case{
				p.receives("signal", notes), {Choose: func() { p.see("none") }},
			}))
		}
	default: // a condition on what others have seen
		return func(p *play, s *machine.Scope) {
			want := len(p.seen) + n
			err := p.m.WaitFor(s, func() bool { return len(p.seen) >= want })
			p.see("waited for %d: %v", want, err)
		}
	}
}

// receives is a case that takes a value.
func (p *play) receives(what string, c *machine.Channel) machine.Case {
	return machine.Case{On: c, Choose: func() {
		v, _ := c.Take()
		p.see("%s %s", what, v)
	}}
}

// do does a step that succeeds or fails, by its number.
func (p *play) do(s *machine.Scope, n int, quick bool) {
	f := p.m.Do(s, &machine.Step{Of: fmt.Sprint("step", n), Quick: quick, Do: func(
		context.Context, string,
	) (*machine.Record, error) {
		if n == 0 {
			return &machine.Record{Fault: "no"}, nil
		}
		return &machine.Record{OK: json.RawMessage(fmt.Sprint(n))}, nil
	}})
	p.m.Wait(f.Name, f)
	p.see("%s %+v", f.Name, f.Outcome())
}

// newPlay returns a program that runs from its beginning.
func newPlay(all []step) *play {
	p := &play{values: []*machine.Channel{machine.NewChannel(0), machine.NewChannel(1), machine.NewChannel(2)}}
	p.m = machine.New(func(m *machine.Machine, _ *schemas.WorkflowStarted) func() schemas.Decision {
		run(p, m.Root(), all)
		return func() schemas.Decision { return decider.Complete("done") }
	}, schemas.Execution{WorkflowID: "w"})
	return p
}

// Whatever a program does and whatever happens, its decisions are the same if it is rebuilt from
// its history before any of them: what it sees depends on the order of
// events alone. The replay of a history agrees with it at every prefix.
func TestReplayIsLive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := program(t, 2)
		b := newBroker(t)
		warm, read := newPlay(all), 0
		defer func() { _ = warm.m.Close() }()
		for turns := 0; b.scheduled != 0 && !b.closed && turns < 12; turns++ {
			b.happens(2)
			started, at := b.start()
			if rapid.IntRange(0, 3).Draw(t, "evicted") == 0 {
				_ = warm.m.Close()
				warm, read = newPlay(all), 0
			}
			l := machine.Live{
				Context: context.Background(), Started: started, At: at, NoSteps: b.draw("ahead", 3) == 0,
				Rest: func(do func()) { do() },
				// some steps are carried over to the next decision
				First: time.Duration(b.draw("first", 1)) * time.Minute, Others: time.Minute, Quick: time.Hour,
			}
			decisions, again := decide(t, warm, b.events[read:], l)
			read = len(b.events)
			rebuilt := newPlay(all)
			others, otherAgain := decide(t, rebuilt, b.events, l)
			_ = rebuilt.m.Close()
			if !reflect.DeepEqual(asked(decisions), asked(others)) || again != otherAgain ||
				!reflect.DeepEqual(warm.seen, rebuilt.seen) {
				t.Fatalf("decided %s %v\nand once it was rebuilt %s %v\nseen %q\nand %q", words(decisions), again,
					words(others), otherAgain, warm.seen, rebuilt.seen)
			}
			b.take(started, decisions, again)
			if b.scheduled == 0 && !b.closed {
				b.happens(5)
			}
		}
		last := newPlay(all)
		defer func() { _ = last.m.Close() }()
		if err := add(last, b.events); err != nil {
			t.Fatal(err)
		}
		if err := last.m.Flush(); err != nil {
			t.Fatal(err)
		}
	})
}

func add(p *play, events []schemas.Event) error {
	for _, e := range events {
		if err := p.m.Add(e); err != nil {
			return err
		}
	}
	return nil
}

func decide(t *rapid.T, p *play, events []schemas.Event, l machine.Live) ([]schemas.Decision, bool) {
	if err := add(p, events); err != nil {
		t.Fatal(err)
	}
	decisions, again, err := p.m.Decide(l)
	if err != nil {
		t.Fatal(err)
	}
	return decisions, again
}

// asked are the decisions without those of ordinary steps: when these end is not told by the history.
func asked(all []schemas.Decision) (asked []schemas.Decision) {
	for _, d := range all {
		a, ok := d.Attributes.(*schemas.RecordMarker)
		if !ok || !strings.HasPrefix(a.MarkerName, "step") && !strings.Contains(a.MarkerName, "/step") ||
			strings.Contains(string(a.Details), "quick") {
			asked = append(asked, d)
		}
	}
	return asked
}

func words(all []schemas.Decision) (text string) {
	for _, d := range all {
		text += fmt.Sprintf("%s %+v; ", d.Type(), d.Attributes)
	}
	return text
}
