package natsconn

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Owner is what has a connection of the client library: a client of Drover, or a [Conn].
type Owner interface{ NATS() *nats.Conn }

// known are the Conns of this process by their connections, and how many use one that is somebody
// else's.
var known = struct {
	sync.Mutex
	conns map[*nats.Conn]*Conn
}{conns: make(map[*nats.Conn]*Conn)}

// Of returns the Conn on the connection of o, so that all parts of a process that share a
// connection share a Conn too. It is nil if there is none: o is nil, nobody has called [Dial] or
// [Use], or it is closed.
func Of(o Owner) *Conn {
	switch c, ok := o.(*Conn); {
	case ok:
		return c
	case o == nil:
		return nil
	}
	known.Lock()
	defer known.Unlock()
	return known.conns[o.NATS()]
}

func (c *Conn) register() {
	known.Lock()
	defer known.Unlock()
	known.conns[c.nc] = c
}

func (c *Conn) unregister() {
	known.Lock()
	defer known.Unlock()
	if known.conns[c.nc] == c {
		delete(known.conns, c.nc)
	}
}

// borrowedConn is what a Conn knows of a connection that it has from somebody else.
type borrowedConn struct {
	borrowed bool   // nc is somebody else's to close; see Use
	users    int    // of a borrowed one; guarded by known
	giveBack func() // gives a borrowed nc its handlers back
}

// Use returns the Conn on a connection that somebody else has made and closes. It is the same for
// all who use the connection, until each of them has called release; after the last one it is
// closed, and the connection is as it was before. Only APIPrefix, Logger and the timeouts of o
// count. The handlers of the connection are called as before, after those of the Conn.
//
// The connection reconnects, waits and pings as its owner has told it to. What the server takes
// from a user by a reload comes back with the next reconnect only: a Conn does not force one here.
func Use(ctx context.Context, nc *nats.Conn, o Options) (c *Conn, release func(), err error) {
	if nc == nil {
		return nil, nil, fmt.Errorf("%w: the connection is nil", ErrInvalid)
	}
	if err := o.validate(); err != nil {
		return nil, nil, err
	}
	api := o.APIPrefix
	o = o.withDefaults()
	c, fresh, err := enter(nc, o)
	if err != nil {
		return nil, nil, err
	}
	if api != "" && api != c.api {
		c.leave()
		return nil, nil, fmt.Errorf(
			"%w: Options.APIPrefix is %q, and the connection is used with %q",
			ErrInvalid, api, c.api)
	}
	if fresh {
		if first, bounded := ctx.Deadline(); bounded {
			o.Timeout = max(min(o.Timeout, time.Until(first)), time.Millisecond)
		}
		c.settleInbox(o.Timeout)
	}
	return c, sync.OnceFunc(c.leave), nil
}

// enter counts a user of the Conn on nc, which is made if there is none.
func enter(nc *nats.Conn, o Options) (c *Conn, fresh bool, err error) {
	known.Lock()
	defer known.Unlock()
	c = known.conns[nc]
	if fresh = c == nil; fresh {
		if c, err = borrow(nc, o); err != nil {
			return nil, false, err
		}
		known.conns[nc] = c
	}
	c.users++
	return c, fresh, nil
}

// leave closes a borrowed Conn after its last user.
func (c *Conn) leave() {
	known.Lock()
	c.users--
	last := c.borrowed && c.users == 0
	known.Unlock()
	if last {
		c.Close()
	}
}

// borrow makes the Conn on a connection of somebody else's.
func borrow(nc *nats.Conn, o Options) (c *Conn, err error) {
	c = newConn(o)
	c.nc, c.borrowed, c.inProcess = nc, true, nc.Opts.InProcessServer != nil
	c.arrive(nc)
	if c.js, err = jetstream.NewWithAPIPrefix(nc, o.APIPrefix); err != nil {
		return nil, fmt.Errorf("%w: Options.APIPrefix %q: %w", ErrInvalid, o.APIPrefix, err)
	}
	if c.inbox, err = newInbox(c); err != nil {
		return nil, fmt.Errorf("%w: reply inbox: %w", ErrNoConnection, fromNATS(err))
	}
	c.putHandlers()
	return c, nil
}

// putHandlers puts the handlers of c before those of the connection. The connection gets its own
// ones back when c is closed.
func (c *Conn) putHandlers() {
	failed, lost, back, closed := c.nc.ErrorHandler(), c.nc.DisconnectErrHandler(),
		c.nc.ReconnectHandler(), c.nc.ClosedHandler()
	c.nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		c.onError(nc, sub, err)
		if failed != nil {
			failed(nc, sub, err)
		}
	})
	c.nc.SetDisconnectErrHandler(func(nc *nats.Conn, err error) {
		c.onDisconnect(nc, err)
		if lost != nil {
			lost(nc, err)
		}
	})
	c.nc.SetReconnectHandler(func(nc *nats.Conn) {
		c.dials.Add(1)
		c.onReconnect(nc)
		if back != nil {
			back(nc)
		}
	})
	c.nc.SetClosedHandler(func(nc *nats.Conn) {
		c.onClosed(nc)
		if closed != nil {
			closed(nc)
		}
	})
	c.giveBack = func() {
		c.nc.SetErrorHandler(failed)
		c.nc.SetDisconnectErrHandler(lost)
		c.nc.SetReconnectHandler(back)
		c.nc.SetClosedHandler(closed)
	}
}
