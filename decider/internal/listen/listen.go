// Package listen keeps a decider worker reachable: it subscribes to the subjects of the workflow
// types that it serves, tells the brokers of them, and ends when the server refuses one of them.
//
// Invariants:
//
//   - The brokers are told of a type only after the server knows of its subscriptions.
//   - The subjects by which owners learn that a worker is gone are left last, after its last
//     answer.
//   - A registered type that is refused ends the worker; one of a source is left out.
package listen

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
	"github.com/sirupsen/logrus"
)

const (
	// queueGroup is what all deciders of a type share: each task goes to one of them.
	queueGroup = "deciders"
	// announceRetry is the time between two tries while the connection does not let an announcement
	// through.
	announceRetry = time.Second
	// confirmFor is how long the server is given to confirm that nobody listens any more.
	confirmFor = time.Second
)

// Handler takes a task of a type. Sticky tells that it came on the worker's own subject. It may
// block its subscription.
type Handler func(typ string, sticky bool, m natsconn.Msg)

// Listener listens for one Run of a worker.
type Listener struct {
	Conn      *natsconn.Conn
	Namespace subject.Namespace
	Identity  string
	// Sticky names the subjects that are the worker's own. It has none if this is empty.
	Sticky string
	// Needs is what the brokers must be able to do.
	Needs   []schemas.Feature
	Log     logrus.FieldLogger
	Options fmt.Stringer // of the worker, for the log
	// Drain is called when ctx of Run is done. It calls unsubscribe, which returns when everything
	// that was received is with the handlers and the server sends no more, and answers what is there.
	Drain func(unsubscribe func(context.Context)) error

	reconnected chan struct{}
	brokers     string // the subject of their answers; none if nothing is needed
	alive       alive
}

// Run serves the types until ctx is done, then drains. It returns what the drain does, and joins to
// it why the listening has ended by itself, if it has.
func (l *Listener) Run(ctx context.Context, fixed map[string]Handler, sources []Source) error {
	l.reconnected = make(chan struct{}, 1)
	defer l.Conn.OnReconnect(l.again)()
	ctx, end := l.untilRefused(ctx, fixed)
	defer end(nil)
	if len(l.Needs) > 0 {
		forget, err := l.capable(ctx, end)
		defer forget()
		if err != nil || ctx.Err() != nil {
			return ended(ctx, err)
		}
	}
	defer l.alive.end()
	var subs []natsconn.Subscription
	for typ, h := range fixed {
		more, err := l.listenTo(typ, h)
		subs = append(subs, more...)
		if err != nil {
			for _, sub := range subs {
				_ = sub.Close() // the error that counts is the first one
			}
			return fmt.Errorf("decider worker: %w", err)
		}
	}
	l.Log.WithField("types", slices.Sorted(maps.Keys(fixed))).Infof("deciders listen: %s",
		l.Options)
	guests := l.follow(ctx, end, fixed, sources)
	l.announceUntilDone(ctx, guests.types)
	subs = append(subs, guests.leave()...)
	return ended(ctx, l.Drain(func(ctx context.Context) { l.unsubscribe(ctx, subs) }))
}

// listenTo subscribes to a type, and to the worker's own subject of it.
func (l *Listener) listenTo(typ string, h Handler) (subs []natsconn.Subscription, err error) {
	sub, err := l.Conn.Subscribe(l.Namespace.Decide(typ), queueGroup,
		func(m natsconn.Msg) { h(typ, false, m) })
	if err != nil {
		return nil, err
	}
	subs = append(subs, sub)
	if l.Sticky == "" {
		return subs, nil
	}
	sub, err = l.Conn.Subscribe(l.Namespace.DecideSticky(typ, l.Sticky), "",
		func(m natsconn.Msg) { h(typ, true, m) })
	if err != nil {
		return subs, err
	}
	return append(subs, sub), l.live(typ)
}

// again is called after a reconnect. It must not block.
func (l *Listener) again() {
	select {
	case l.reconnected <- struct{}{}:
	default:
	}
}

// announceUntilDone announces the types, once at the beginning and once after each reconnect, until
// ctx is done.
func (l *Listener) announceUntilDone(ctx context.Context, types func() []string) {
	for {
		err := l.announce(ctx, types())
		if err == nil {
			select {
			case <-ctx.Done():
				return
			case <-l.reconnected:
			}
			continue
		}
		if ctx.Err() != nil {
			return
		}
		l.Log.WithField("err", err).Warn(
			"deciders could not announce themselves, trying again; runs that wait may wait longer")
		retry := time.NewTimer(announceRetry)
		select {
		case <-ctx.Done():
		case <-l.reconnected:
		case <-retry.C:
		}
		retry.Stop()
	}
}

// announce tells the brokers that the types are served. The subscriptions are flushed first: an
// announcement that overtook them would make the broker ask nobody once more.
func (l *Listener) announce(ctx context.Context, types []string) error {
	if err := l.Conn.Flush(ctx); err != nil {
		return err
	}
	if err := l.askBrokers(); err != nil { // those that we met by now
		return err
	}
	for _, typ := range types {
		body, err := schemas.MarshalJSON(
			&schemas.Announcement{V: schemas.Version, Type: typ, Worker: l.Identity})
		if err != nil {
			return err
		}
		if err := l.Conn.Publish(l.Namespace.Announce(typ), nil, body); err != nil {
			return err
		}
	}
	return nil
}

// unsubscribe returns when everything that was received is with the handlers and the server sends
// no more. A task that is on its way on an in-process connection is lost to this worker, and the
// broker asks again after its timeout.
func (l *Listener) unsubscribe(ctx context.Context, subs []natsconn.Subscription) {
	var wg sync.WaitGroup
	for _, sub := range subs {
		wg.Go(func() {
			if err := sub.Drain(ctx); err != nil {
				_ = sub.Close() // out of time, or out of connection
			}
		})
	}
	wg.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmFor)
	defer cancel()
	if err := l.Conn.Flush(ctx); err != nil {
		l.Log.WithField("err", err).
			Debug("the server has not confirmed that the decider worker listens no more")
	}
}
