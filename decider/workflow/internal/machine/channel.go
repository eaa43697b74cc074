package machine

import (
	"maps"
	"slices"

	"github.com/droverhq/drover/decider/workflow/internal/coroutine"
	"github.com/droverhq/drover/schemas"
)

// Channel has values that no code has received yet: those of a signal, from the first event on, or
// what coroutines send to each other.
type Channel struct {
	room    int // how many it holds before senders wait; signals do not
	queue   []any
	offers  []offer // of senders that wait, in their order; only while there is no room
	closed  bool
	waiters coroutine.Waiters // who would receive
	ahead   func()            // gets what the decision has seen; nil between coroutines
}

// NewChannel returns a channel that holds some values before senders wait.
func NewChannel(room int) *Channel { return &Channel{room: room} }

// Signals returns the channel of a signal. Its values are payloads.
func (m *Machine) Signals(name string) *Channel {
	c := m.signals[name]
	if c == nil {
		c = &Channel{ahead: func() { m.hurry(name) }}
		m.signals[name] = c
	}
	return c
}

// hurry gives a channel the signals of the turn that have not been delivered yet. Conditions are
// looked at after each event anyway.
func (m *Machine) hurry(name string) {
	mine := func(e schemas.Event) bool {
		a, ok := e.Attributes.(*schemas.Signal)
		return ok && a.SignalName == name
	}
	if m.conditions.judged || !slices.ContainsFunc(m.left, mine) {
		return
	}
	for _, e := range m.left {
		if mine(e) {
			m.deliver(e)
		}
	}
	m.left = slices.DeleteFunc(slices.Clone(m.left), mine) // the turn keeps its events
}

// Ready implements [Waitable]: there is a value to take, or it is known that none comes.
func (c *Channel) Ready() bool {
	return len(c.queue) > 0 || c.closed || slices.ContainsFunc(c.offers, offer.stands)
}
func (c *Channel) waiting() *coroutine.Waiters { return &c.waiters }

// ReadyNow is Ready for those who do not wait: signals that the decision has seen count before they
// are delivered. So code that takes all of them before it returns loses none: a close is refused if
// one has come that its decision has not seen.
func (c *Channel) ReadyNow() bool {
	if c.ahead != nil {
		c.ahead()
	}
	return c.Ready()
}

// Len is how many values it has, as ReadyNow.
func (c *Channel) Len() int {
	c.ReadyNow()
	return len(c.queue)
}

// Take takes the oldest value, if there is one.
func (c *Channel) Take() (v any, ok bool) {
	if len(c.queue) == 0 {
		return c.accept()
	}
	v = c.queue[0]
	c.queue[0] = nil
	c.queue = c.queue[1:]
	if next, ok := c.accept(); ok {
		c.queue = append(c.queue, next)
	}
	return v, true
}

// accept takes the oldest offer of the senders that wait, if there is one.
func (c *Channel) accept() (v any, ok bool) {
	for len(c.offers) > 0 {
		o := c.offers[0]
		c.offers = c.offers[1:]
		if o.stands() {
			o.of.taken = o.n
			o.of.waiters.Wake()
			return o.v, true
		}
	}
	return nil, false
}

// put adds a value if there is room.
func (c *Channel) put(v any) bool {
	if c.closed {
		panic("a value is sent to a channel that is closed")
	}
	if len(c.queue) >= c.room {
		return false
	}
	c.push(v)
	return true
}

// Close says that no value follows. Nobody may send any more.
func (c *Channel) Close() {
	if c.closed || slices.ContainsFunc(c.offers, offer.stands) {
		panic("a channel is closed twice, or while a coroutine waits to send to it")
	}
	c.closed = true
	c.waiters.Wake()
}

func (c *Channel) push(v any) {
	c.queue = append(c.queue, v)
	c.waiters.Wake() // all look; one takes it, the others wait again
}

// Signal is a signal that nobody has received.
type Signal struct {
	Name  string          `json:"name"`
	Value schemas.Payload `json:"value"`
}

// Unreceived are the signals that nobody has received: by name, each in its order.
func (m *Machine) Unreceived() (all []Signal) {
	for _, name := range slices.Sorted(maps.Keys(m.signals)) {
		for _, v := range m.signals[name].queue {
			p, _ := v.(schemas.Payload)
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

// conditions are all of a run.
type conditions struct {
	waiting []*condition // in the order in which they began to
	judged  bool         // one of them is looked at now
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
	if m.judge(holds) {
		return nil
	}
	c := &condition{holds: holds}
	m.conditions.waiting = append(m.conditions.waiting, c)
	for !c.met && s.err == nil {
		if err := m.WaitAny("a condition", c, s); err != nil {
			return err
		}
	}
	if c.met {
		return nil
	}
	m.conditions.waiting = slices.DeleteFunc(
		m.conditions.waiting,
		func(other *condition) bool { return other == c },
	)
	return s.err
}

func (m *Machine) judge(holds func() bool) bool {
	m.conditions.judged = true
	defer func() { m.conditions.judged = false }()
	return holds()
}

// lookAtConditions wakes the first coroutine whose condition holds, and tells whether there was
// one. What it does may make others hold, or not hold any more.
func (m *Machine) lookAtConditions() (met bool, err error) {
	for n, c := range m.conditions.waiting {
		err := m.scheduler.Watch("the condition of WaitFor", func() { c.met = m.judge(c.holds) })
		if err != nil {
			return false, err
		}
		if c.met {
			m.conditions.waiting = slices.Delete(m.conditions.waiting, n, n+1)
			c.w.Wake()
			return true, nil
		}
	}
	return false, nil
}
