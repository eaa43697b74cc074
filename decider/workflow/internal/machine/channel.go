package machine

import (
	"maps"
	"slices"

	"github.com/droverhq/drover/decider/workflow/internal/coroutine"
	"github.com/droverhq/drover/schemas"
)

// Channel has the signals of one name that no code has received yet, from the first event on.
type Channel struct {
	queue   []schemas.Payload
	waiters coroutine.Waiters
}

// Signals returns the channel of a signal.
func (m *Machine) Signals(name string) *Channel {
	c := m.signals[name]
	if c == nil {
		c = &Channel{}
		m.signals[name] = c
	}
	return c
}

// Ready implements [Waitable].
func (c *Channel) Ready() bool                 { return len(c.queue) > 0 }
func (c *Channel) waiting() *coroutine.Waiters { return &c.waiters }

// Len is how many signals wait.
func (c *Channel) Len() int { return len(c.queue) }

// Take takes the oldest; there is one.
func (c *Channel) Take() schemas.Payload {
	p := c.queue[0]
	c.queue[0] = nil
	c.queue = c.queue[1:]
	return p
}

// Signal is a signal that nobody has received.
type Signal struct {
	Name  string          `json:"name"`
	Value schemas.Payload `json:"value"`
}

// Unreceived are the signals that nobody has received: by name, each in its order.
func (m *Machine) Unreceived() (all []Signal) {
	for _, name := range slices.Sorted(maps.Keys(m.signals)) {
		for _, p := range m.signals[name].queue {
			all = append(all, Signal{Name: name, Value: p})
		}
	}
	return all
}

// Receive gives signals of a run before to this one.
func (m *Machine) Receive(all []Signal) {
	for _, s := range all {
		m.Signals(s.Name).push(s.Value)
	}
}

func (c *Channel) push(p schemas.Payload) {
	c.queue = append(c.queue, p)
	c.waiters.Wake() // all look; one takes it, the others wait again
}

// condition is what a coroutine waits for that only code can judge.
type condition struct {
	holds func() bool
	w     coroutine.Waiters
	met   bool
}

// Ready implements [Waitable].
func (c *condition) Ready() bool                 { return c.met }
func (c *condition) waiting() *coroutine.Waiters { return &c.w }

// WaitFor waits until a function of the code returns true, or the scope is canceled. It is called
// after each event, and when other coroutines have run.
func (m *Machine) WaitFor(s *Scope, holds func() bool) error {
	if holds() {
		return nil
	}
	c := &condition{holds: holds}
	m.conditions = append(m.conditions, c)
	for !c.met && s.err == nil {
		if err := m.WaitAny("a condition", c, s); err != nil {
			return err
		}
	}
	if c.met {
		return nil
	}
	m.conditions = slices.DeleteFunc(m.conditions, func(other *condition) bool { return other == c })
	return s.err
}

// lookAtConditions wakes the first coroutine whose condition holds, and tells whether there was
// one. What it does may make others hold, or not hold any more.
func (m *Machine) lookAtConditions() (met bool, err error) {
	for n, c := range m.conditions {
		err := m.scheduler.Watch("the condition of WaitFor", func() { c.met = c.holds() })
		if err != nil {
			return false, err
		}
		if c.met {
			m.conditions = slices.Delete(m.conditions, n, n+1)
			c.w.Wake()
			return true, nil
		}
	}
	return false, nil
}
