// Package deadline makes contexts with a deadline that cost nothing until somebody waits for their
// end.
//
// A context of the standard library takes a timer and a place among its parent's children when it
// is made, and gives both back when it is canceled. A function that returns before it ever looks at
// its context needs neither, and most calls of most activities and deciders do. Here both are made
// with the first Done, which is also what every child asks for. Err, Value and [context.Cause] tell
// the same as for a context of the standard library, by the clock.
//
// It is for who calls somebody else's function. Who waits for Done in any case makes a context of
// the standard library.
package deadline

import (
	"context"
	"sync"
	"time"
)

// Context is a context that ends at its time, when it is canceled, or with its parent, whichever is
// first. Where its parent has ended as well before anybody asked, the parent's cause counts,
// whatever was first.
type Context struct {
	parent context.Context
	at     time.Time // zero: no deadline of its own
	late   error     // the cause of an end by the deadline

	mu       sync.Mutex
	made     context.Context // what tells of the end; nil: nobody waits, and nobody has seen an end
	stop     context.CancelCauseFunc
	canceled bool // before it was made, for reason
	reason   error
}

// New returns a child of parent that ends at the given time with late as its cause; the zero time
// is no deadline. Cancel must be called when it is not needed any more.
func New(parent context.Context, at time.Time, late error) *Context {
	return &Context{parent: parent, at: at, late: late}
}

// Cancel ends the context with this cause, or [context.Canceled] if it is nil, unless it has ended.
// It may be called by anybody, and more than once.
func (c *Context) Cancel(cause error) {
	c.mu.Lock()
	if c.made == nil && c.ended() {
		c.inner() // the end that it has had is the one that counts
	}
	stop := c.stop
	if stop == nil {
		c.canceled, c.reason = true, cause
	}
	c.mu.Unlock()
	if stop != nil {
		stop(cause)
	}
}

// ended tells whether a context that was not made has ended. The caller holds c.mu.
func (c *Context) ended() bool {
	return c.canceled || c.parent.Err() != nil || !c.at.IsZero() && !time.Now().Before(c.at)
}

// inner is the context that tells of the end. The caller holds c.mu.
func (c *Context) inner() context.Context {
	switch {
	case c.made != nil:
	case c.canceled: // before its parent and its deadline, or Cancel would have made it
		c.made, c.stop = context.WithCancelCause(context.WithoutCancel(c.parent))
		c.stop(c.reason)
	default:
		c.made, c.stop = context.WithCancelCause(c.parent)
		if !c.at.IsZero() {
			stop, free := c.stop, context.CancelFunc(nil)
			c.made, free = context.WithDeadlineCause(c.made, c.at, c.late)
			c.stop = func(cause error) { stop(cause); free() }
		}
	}
	return c.made
}

// Deadline implements [context.Context].
func (c *Context) Deadline() (time.Time, bool) {
	at, ok := c.parent.Deadline()
	if !c.at.IsZero() && (!ok || c.at.Before(at)) {
		return c.at, true
	}
	return at, ok
}

// Done implements [context.Context].
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inner().Done()
}

// Err implements [context.Context].
func (c *Context) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil && !c.ended() {
		return nil
	}
	return c.inner().Err()
}

// Value implements [context.Context]. The standard library asks it for what [context.Cause] tells.
func (c *Context) Value(key any) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil && !c.ended() {
		return c.parent.Value(key)
	}
	return c.inner().Value(key)
}
