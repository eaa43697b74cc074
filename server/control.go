package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// errDrained is the cause of a stop that an operator asked for.
var errDrained = errors.New("told to drain")

// listen answers on the control subject of the node, in its home namespace.
func (n *node) listen() (natsconn.Subscription, error) {
	return n.conn.Subscribe(n.home.space.Name.Control(n.member.Name()), "", n.control)
}

// control does what an operator says, and answers if it is asked to.
func (n *node) control(m natsconn.Msg) {
	a := schemas.ControlAnswer{V: schemas.Version, Node: n.member.Name()}
	var c schemas.Control
	if err := schemas.Unmarshal(m.Data, &c); err != nil {
		a.Error = &schemas.Error{Code: schemas.CodeInvalid, Message: err.Error()}
	} else {
		a.Status, a.Error = n.obey(c)
	}
	a.Status = cmp.Or(a.Status, n.member.Status())
	if m.Reply == "" {
		return
	}
	body, err := schemas.MarshalJSON(&a)
	if err == nil {
		err = m.Respond(nil, body)
	}
	if err != nil {
		n.log.WithError(err).Warn("an operator is not answered")
	}
}

// obey returns the status that follows, or why not.
func (n *node) obey(c schemas.Control) (schemas.NodeStatus, *schemas.Error) {
	log := n.log.WithField("reason", c.Reason)
	switch c.Kind {
	case schemas.ControlAck:
		if !n.halted.Load() {
			return "", &schemas.Error{
				Code: schemas.CodeConflict, Message: fmt.Sprintf("node %s is %s: it waits for "+
					"no acknowledgement", n.member.Name(), n.member.Status()),
			}
		}
		log.Info("an operator has acknowledged the unexpected shutdown")
		n.ack()
		return schemas.NodeRecovering, nil
	case schemas.ControlDrain:
		if c.Timeout < 0 {
			return "", &schemas.Error{
				Code: schemas.CodeInvalid,
				Message: fmt.Sprintf("timeout is %v: use more than 0, or 0 for that of the node",
					c.Timeout),
				Field: "timeout",
			}
		}
		log.Info("an operator has told this node to drain")
		if c.Timeout > 0 {
			n.drain.CompareAndSwap(0, int64(c.Timeout.Std()))
		}
		n.stop(errDrained)
		return schemas.NodeDraining, nil
	}
	return "", &schemas.Error{
		Code: schemas.CodeInvalid,
		Message: fmt.Sprintf("kind is %q: a node knows %s and %s",
			c.Kind, schemas.ControlDrain, schemas.ControlAck),
	}
}

// drainLimit is how long what runs may take to finish.
func (n *node) drainLimit() time.Duration {
	if d := n.drain.Load(); d > 0 {
		return time.Duration(d)
	}
	return n.o.DrainTimeout
}

// draining makes the stop known.
func (n *node) draining(ctx context.Context) {
	how := "stopping"
	if n.o.Hurry != nil {
		how += "; a second signal cuts it short"
	}
	n.log.WithField("limit", n.drainLimit()).Info(how)
	n.telling.Go(func() { n.write(ctx, schemas.NodeDraining) })
}
