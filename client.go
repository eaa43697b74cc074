package drover

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
)

// Client talks to one namespace. All methods may be called by several goroutines at once.
type Client struct {
	conn      *natsconn.Conn
	release   func() // ends the use of conn
	namespace subject.Namespace
	name      string
	timeout   time.Duration
	log       logrus.FieldLogger
	mustExist bool // the namespace
	tries     tries
}

// Connect connects to NATS; nil options mean all defaults. It does not ask whether anybody serves
// the namespace. A first connection that fails is an error that matches [ErrUnavailable] and names
// the address, unless [Options.RetryOnFailedConnect] says to try again; after that the connection
// heals itself, and calls wait for it as they wait for an answer.
func Connect(ctx context.Context, o *Options) (*Client, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, newError(query{verb: "connect"}, err)
	}
	c := &Client{
		namespace: subject.Namespace(opts.Namespace), name: opts.Name,
		timeout: opts.Timeout, log: opts.Logger, mustExist: opts.NamespaceMustExist,
	}
	var err error
	if opts.Conn != nil {
		c.conn, c.release, err = natsconn.Use(ctx, opts.Conn, opts.dial())
	} else if c.conn, err = natsconn.Dial(ctx, opts.dial()); err == nil {
		c.release = c.conn.Close
	}
	if err != nil {
		return nil, newError(query{verb: "connect"}, err)
	}
	return c, nil
}

// Close closes the connection, and calls that are under way end with an error. A connection that
// was given by [Options.Conn] stays open, and the calls of other clients on it go on.
func (c *Client) Close() {
	c.tries.close()
	c.release()
}

// Namespace is the tenant that this client talks to.
func (c *Client) Namespace() string { return string(c.namespace) }

// NATS is the client's connection, for what a program itself says to NATS. It stays the client's to
// close, unless it was given by [Options.Conn].
func (c *Client) NATS() *nats.Conn { return c.conn.NATS() }
