package natsconn

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
)

// homeToken ends a subject of the reply inbox that no question has: those are numbers in base 36.
const homeToken = "at-home"

// Home is a subject on which this connection listens, and no other, as long as it lives. What comes
// there is dropped. Others learn by [Conn.Unheard] that the connection is gone.
func (c *Conn) Home() string { return c.inbox.prefix + homeToken }

// Dials is how often a connection was begun, or tried, and one more when it is closed. It grows
// before anything can be sent on a new one: who has seen a number and sees it again knows that what
// was sent between went by the same connection, or nowhere.
func (c *Conn) Dials() uint64 { return c.dials.Load() }

// Unheard tells on which of some subjects nobody listens: an empty message goes to each. It is what
// the server knows to which this connection leads. Of a client of that server it is the truth; of
// one that is connected to another server of the cluster it may be late. It has no limit but ctx: a
// server answers at once, or the connection is made anew. The error is [ErrDisconnected] when
// nothing can be sent or the connection was lost, or a [*RefusedError], possibly one call late,
// when the server refuses one of the subjects.
func (c *Conn) Unheard(ctx context.Context, subjects []string) (unheard []string, err error) {
	defer c.denied.wait()()
	again := c.reconnected()
	// Only the inbox's goroutine uses these, until heard is closed: it takes the answers in their
	// order.
	var silent []string
	over, heard := false, make(chan struct{})
	marker, forget := c.inbox.expect(func(*nats.Msg) {
		if !over {
			over = true
			close(heard)
		}
	})
	defer forget()
	for _, s := range subjects {
		if err := c.refused(s, "", c.born, false); err != nil {
			return nil, err
		}
		reply, forget := c.inbox.expect(func(m *nats.Msg) {
			if !over && noResponders(m.Header, m.Data) {
				silent = append(silent, s)
			}
		})
		defer forget()
		if err := c.write(&nats.Msg{Subject: s, Reply: reply}); err != nil {
			return nil, fmt.Errorf("%s: %w", s, fromNATS(err))
		}
	}
	// The server works through a connection in order: what it has to say about the messages comes
	// before this one.
	if err := c.nc.Publish(marker, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", marker, fromNATS(err))
	}
	select {
	case <-heard:
		return silent, nil
	case <-again:
		return nil, fmt.Errorf("who listens: %w", ErrDisconnected)
	case <-ctx.Done():
		return nil, fmt.Errorf("who listens: %w", ctx.Err())
	case <-c.done:
		return nil, fmt.Errorf("connection: %w", ErrClosed)
	}
}
