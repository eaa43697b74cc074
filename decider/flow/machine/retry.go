package machine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/droverhq/drover/decider/flow/backoff"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/decider/flow/value"
)

// attempts are what a retry step says, evaluated.
type attempts struct {
	key    string
	limits []backoff.Limit
	delay  *backoff.Backoff
	mode   string // "", true, false or force
	next   string
}

func (m *machine) attempts(x *act) (a attempts, err error) {
	if a.key, err = x.text("hash"); err != nil {
		return a, err
	}
	if a.key == "" {
		a.key = x.st.Ref
	}
	v, err := x.input("limit")
	if err != nil {
		return a, err
	}
	for _, text := range texts(v) {
		l, err := backoff.ParseLimit(text)
		if err != nil {
			return a, err
		}
		a.limits = append(a.limits, l)
	}
	if v, err = x.input("backoff"); err != nil {
		return a, err
	}
	a.delay = &backoff.Backoff{}
	if all := texts(v); len(all) > 0 {
		if a.delay, err = backoff.Parse(strings.Join(all, " ")); err != nil {
			return a, err
		}
	}
	if v, err = x.input("replay"); err != nil {
		return a, err
	}
	if v != nil {
		if a.mode, err = value.Text(v); err != nil {
			return a, err
		}
		a.mode = lower(a.mode)
	}
	if x.st.next != nil {
		a.next, err = textOf(x.eval(x.st.next))
	}
	return a, err
}

// retry checks the limits and waits; what it goes back to is found when the wait is over.
func (m *machine) retry(x *act) (result, error) {
	a, err := m.attempts(x)
	if err != nil {
		return result{}, err
	}
	before := m.s.Retries[a.key]
	if l, hit := before.Reached(a.limits, m.now); hit {
		f := run.Failuref(run.NameRetries, "the limit of %s is reached after %d retries",
			l, before.Count)
		if h := m.handler(); h != nil {
			f.Because(h.Failure)
		}
		return result{}, f
	}
	if x.st.timeout != nil {
		d, err := x.duration(x.st.timeout)
		if err != nil {
			return result{}, fmt.Errorf("timeout: %w", err)
		}
		if before.Expired(d, m.now) {
			return result{}, run.Failuref(run.NameTimeout, "the first retry is more than %s ago", d)
		}
	}
	if d := a.delay.Delay(before.Count, m.random()); d > 0 {
		return result{}, m.waitFor(Action{Do: StartTimer, ID: x.id(), Delay: d})
	}
	return m.retryNow(x)
}

func (m *machine) retryNow(x *act) (result, error) {
	a, err := m.attempts(x)
	if err != nil {
		return result{}, err
	}
	if m.s.Retries == nil {
		m.s.Retries = map[string]backoff.Records{}
	}
	m.s.Retries[a.key] = m.s.Retries[a.key].Add(m.now, a.limits)
	x.keep()
	h := m.handler()
	err = m.goBack(x, a)
	if f, ok := errors.AsType[*run.Failure](err); ok && h != nil && f.Cause == nil {
		f.Because(h.Failure)
	}
	if errors.Is(err, errMoved) {
		x.inst.Phase, x.inst.Failure = run.IsDone, nil
		m.s.Record(x.st.Ref).Done++
		m.s.Trace.Tell(x.st.Ref, run.Ended, nil, nil)
		m.sweep()
	}
	return result{}, err
}

// goBack is the table of what a retry does.
func (m *machine) goBack(x *act, a attempts) error {
	h := m.handler()
	word, force := lower(a.next), a.mode == "force"
	replay := a.mode == "true" || force
	switch {
	case word == "" && !replay && h != nil, word == atEnd && replay && h != nil:
		err := m.resume(h.From, force)
		if !cannotReplay(err) {
			return err
		}
		last := m.replayLast(x.st, force)
		if cannotReplay(last) {
			return err // it names the step that has failed, and says what lets that run again
		}
		return last
	case word == atEnd && replay:
		m.say("warn", "retry from end at step "+x.st.Ref+
			" is in no handler: it goes to the last replay point")
		return m.replayLast(x.st, force)
	case word == "" || word == atLast && a.mode != "false":
		return m.replayLast(x.st, force)
	case !replay:
		x.inst.Next = a.next
		return m.jump(a.next)
	case word == atStart:
		return m.replay(atStart, force)
	}
	ref, err := m.find(a.next)
	if err != nil {
		return err
	}
	return m.replay(ref, force)
}

// cannotReplay tells of what there is no replay point for, or no right to begin at it.
func cannotReplay(err error) bool {
	f, ok := errors.AsType[*run.Failure](err)
	return ok && f.Has(run.NameReplay)
}

// find returns the ref of the step that an id means here.
func (m *machine) find(id string) (string, error) {
	for i := len(m.s.Stack) - 1; i >= 0; i-- {
		l := m.list(&m.s.Stack[i])
		if n, ok := l.ids[id]; ok {
			return l.steps[n].Ref, nil
		}
	}
	return "", noStep(id)
}
