package natsconn

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/sirupsen/logrus"
)

const (
	regainFirst = 5 * time.Second
	regainMost  = time.Minute
	probeLimit  = 2 * time.Second
	// probeTold is how long the word about a subscription too many may take from the server's
	// answer to the handler.
	probeTold = 100 * time.Millisecond
)

// tooMany stands among the subjects that are not heard for whatever is beyond the subscriptions
// that a connection may have: the server does not say which subjects those are. It is no subject.
const tooMany = ""

// takenMark stands in the server's text about a subscription that it had granted, and has ended.
// That of one that it does not grant has no number.
const takenMark = `(sid "`

// A server whose configuration takes the right to hear a subject away, by a reload, ends the
// subscriptions to it. It does not take them up again when the right comes back, and the library
// sends them with a new connection only: without what follows, a process would hold what it owns,
// and hear nothing, for as long as it lives.

// lostSubjects are the subjects that a Conn may not hear. Conn.mu guards the maps.
type lostSubjects struct {
	// subjects whose subscription the server has ended, with the dials at its last word; nil while
	// regain need not run
	taken    map[string]uint64
	optional map[string]struct{} // subjects whose refusal is no news
	// how often the server has refused a subscription since there are too many
	full atomic.Uint64
}

// refusedAnew notes that the server has ended, or refuses again, a subscription that it had
// granted. It tells whether that is new.
func (c *Conn) refusedAnew(subject string, taken bool) (news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.taken[subject]
	if c.closed || c.borrowed || !known && !taken {
		return false
	}
	if c.taken == nil {
		c.taken = map[string]uint64{}
		go c.regain()
	}
	c.taken[subject] = c.dials.Load()
	return !known
}

// refusedTooMany notes that the server has refused a subscription since there are too many. It
// takes that one up no more than those of which it took the right away, though the limit be raised.
func (c *Conn) refusedTooMany() {
	c.full.Add(1)
	if c.met.Load() != nil { // else it is being dialed
		c.refusedAnew(tooMany, true)
	}
}

// regain asks for what was taken until the server grants it, and connects anew then.
func (c *Conn) regain() {
	for wait := regainFirst; c.rest(wait); wait = min(2*wait, regainMost) {
		subjects := c.stillTaken()
		if subjects == nil {
			return
		}
		if !slices.ContainsFunc(subjects, c.granted) {
			continue
		}
		up := c.reconnected()
		c.log.WithField("subjects", len(subjects)).
			Info("the NATS server lets this user hear again what it took away: connecting anew")
		if c.nc.ForceReconnect() != nil {
			return // it is closed
		}
		select {
		case <-up:
		case <-c.done:
			return
		}
		if !slices.Contains(subjects, tooMany) {
			// room for one more may be too little, which shows after the reconnect
			wait = regainFirst
		}
	}
}

// rest reports whether the connection is not closed after that time.
func (c *Conn) rest(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.done:
		return false
	}
}

// stillTaken are the subjects that this connection, or the last one, was not to hear; nil if there
// are none any more. What was not refused since the connection was made anew is heard again.
func (c *Conn) stillTaken() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var still []string
	for subject, dial := range c.taken {
		if dial == c.dials.Load() || !c.nc.IsConnected() {
			still = append(still, subject)
		} else {
			delete(c.taken, subject)
		}
	}
	if len(still) == 0 {
		c.taken = nil
	}
	return still
}

// granted tells whether this user may hear a subject now. It subscribes without a queue, so that
// nobody gets less meanwhile.
func (c *Conn) granted(subject string) bool {
	if subject == tooMany {
		return c.hasRoom()
	}
	if !c.nc.IsConnected() {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeLimit)
	defer cancel()
	before := c.nc.LastError()
	sub, err := c.nc.Subscribe(subject, func(*nats.Msg) {})
	if err != nil {
		return false
	}
	defer func() { _ = sub.Unsubscribe() }() // it fails only when the connection is closed
	if c.nc.FlushWithContext(ctx) != nil {
		return false
	}
	said := c.nc.LastError() // each refusal is a value of its own
	return said == before || !refuses(said, subject)
}

// hasRoom tells whether the server takes one more subscription of this connection.
func (c *Conn) hasRoom() bool {
	if !c.nc.IsConnected() {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeLimit)
	defer cancel()
	before := c.full.Load()
	sub, err := c.nc.Subscribe(c.inbox.prefix+"room", func(*nats.Msg) {})
	if err != nil {
		return false
	}
	defer func() { _ = sub.Unsubscribe() }() // it fails only when the connection is closed
	// The errors are one value, so that the last one does not tell: they are counted, by the
	// handler, which may lag.
	return c.nc.FlushWithContext(ctx) == nil && c.rest(probeTold) && c.full.Load() == before
}

// refuses tells whether an error of the server is about a subscription to this subject.
func refuses(err error, subject string) bool {
	e := refusalIn(err.Error())
	return e != nil && e.Subscribe && e.Subject == subject
}

// tellRefused logs a refusal. What a caller waits for is told to the caller, who tells.
func (c *Conn) tellRefused(err error) {
	text, log := err.Error(), c.log.WithField("err", err)
	e := refusalIn(text)
	switch taken := strings.Contains(text, takenMark); {
	case e != nil && e.Subscribe && c.refusedAnew(e.Subject, taken) && taken:
		log.Warn(
			"the NATS server has taken a subject away, give this user the permission back: it is asked for until then")
	case c.denied.waiting.Load() > 0,
		e != nil && e.Subscribe && (c.isTaken(e.Subject) || c.isOptional(e.Subject)):
		log.Debug("the NATS server refused a subject, give this user the permission")
	default:
		log.Log(logrus.WarnLevel,
			"the NATS server refused a subject, give this user the permission")
	}
}

// Optional says of a subject that it is no news if this user may not hear it. It is called before
// the subscription: the server's word may come long after whoever subscribed has gone on.
func (c *Conn) Optional(subject string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.optional == nil {
		c.optional = map[string]struct{}{}
	}
	c.optional[subject] = struct{}{}
}

func (c *Conn) isOptional(subject string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, optional := c.optional[subject]
	return optional
}

func (c *Conn) isTaken(subject string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, taken := c.taken[subject]
	return taken
}
