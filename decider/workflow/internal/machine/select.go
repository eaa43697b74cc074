package machine

import (
	"slices"

	"github.com/droverhq/drover/decider/workflow/internal/coroutine"
)

// Case is one way to go on from a Select: something to wait for, a value to be sent, or the default.
type Case struct {
	On     Waitable
	To     *Channel // gets the value
	Value  any
	Choose func()
	Chosen *bool // it is not chosen twice; nil: it may be
}

// sending is what a Select that waits offers to channels: one of its values may be taken.
type sending struct {
	taken   int // the case whose value was taken; -1: none
	waiters coroutine.Waiters
}

// Ready implements [Waitable].
func (s *sending) Ready() bool                 { return s.taken >= 0 }
func (s *sending) waiting() *coroutine.Waiters { return &s.waiters }

// offer is a value that a case would send.
type offer struct {
	of *sending
	n  int // the case
	v  any
}

// stands tells whether it may be taken.
func (o offer) stands() bool { return !o.of.Ready() }

// Select waits until a case is ready and chooses it: the first that is. What it chooses is taken in
// the same step. It returns the error of the scope if that is canceled before; ready cases come
// first.
func (m *Machine) Select(why string, s *Scope, cases []Case) error {
	n, err := m.choose(why, s, cases)
	if err != nil {
		return err
	}
	cases[n].Choose() // no other coroutine runs in between
	return nil
}

func (m *Machine) choose(why string, s *Scope, cases []Case) (chosen int, err error) {
	if _, err := m.Enter("workflow: " + why); err != nil {
		return 0, err
	}
	var offered *sending
	defer func() { withdraw(cases, offered) }()
	if slices.ContainsFunc(cases, func(c Case) bool { return c.On == nil && c.To == nil }) {
		for _, c := range cases { // it does not wait
			if ch, ok := c.On.(*Channel); ok {
				ch.ReadyNow()
			}
		}
	}
	for {
		all := []Waitable{s}
		otherwise := -1
		for n, c := range cases {
			switch {
			case c.Chosen != nil && *c.Chosen:
			case c.To != nil && c.To.put(c.Value), c.On != nil && c.On.Ready():
				return n, nil
			case c.On != nil:
				all = append(all, c.On)
			case c.To == nil:
				otherwise = n
			}
		}
		switch {
		case s.err != nil:
			return 0, s.err
		case otherwise >= 0:
			return otherwise, nil
		case offered == nil:
			offered = offerAll(cases)
		}
		if err := m.WaitAny(why, append(all, offered)...); err != nil {
			return 0, err
		}
		if offered.Ready() {
			return offered.taken, nil
		}
	}
}

// offerAll offers the values of cases to their channels.
func offerAll(cases []Case) *sending {
	s := &sending{taken: -1}
	for n, c := range cases {
		if c.To != nil {
			c.To.offers = append(c.To.offers, offer{of: s, n: n, v: c.Value})
			c.To.waiters.Wake()
		}
	}
	return s
}

// withdraw takes back what was offered.
func withdraw(cases []Case, offered *sending) {
	if offered == nil {
		return
	}
	offered.taken = 0 // nothing of it stands
	for _, c := range cases {
		if c.To != nil {
			c.To.offers = slices.DeleteFunc(c.To.offers, func(o offer) bool { return o.of == offered })
		}
	}
}
