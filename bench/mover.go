package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// mover plays the part of one process on a tape: it publishes what that process had published, and takes what it had taken.
type mover struct {
	t     *tape
	from  string
	dial  func() (*nats.Conn, error)
	lanes []*lane
	left  atomic.Int64 // to publish and to take
	done  chan error   // has one value in the end
	conns []*nats.Conn
}

// lane publishes some of the messages over a connection of its own, a number of them unacknowledged at any time.
type lane struct {
	conn   *nats.Conn
	inbox  string
	window chan struct{}
	all    []taped
}

// prepare opens connections and consumers, so that only messages move once it begins.
func (m *mover) prepare(ctx context.Context) error {
	m.done = make(chan error, 1)
	width := 1
	if m.from == fromServer {
		width = max(m.t.Partitions, 1) // a broker has a connection for each
	}
	for range width {
		l := &lane{window: make(chan struct{}, max(m.t.Outstanding/width, 1))}
		var err error
		if l.conn, err = m.connect(); err != nil {
			return err
		}
		l.inbox = l.conn.NewRespInbox() + "."
		if _, err := l.conn.Subscribe(l.inbox+"*", func(a *nats.Msg) { m.acknowledged(l, a) }); err != nil {
			return err
		}
		m.lanes = append(m.lanes, l)
	}
	for _, msg := range m.t.Messages {
		if msg.From == m.from {
			l := m.lanes[msg.Stream%width]
			l.all = append(l.all, msg)
			m.left.Add(1)
		}
	}
	for i := range m.t.Streams {
		for _, c := range m.t.Streams[i].Consumers {
			if err := m.take(ctx, i, c); err != nil {
				return err
			}
		}
	}
	for _, c := range m.conns {
		if err := c.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (m *mover) connect() (*nats.Conn, error) {
	c, err := m.dial()
	if err != nil {
		return nil, err
	}
	m.conns = append(m.conns, c)
	return c, nil
}

// taker is the process that a consumer belongs to: workers acknowledge their tasks one by one, the server reads without.
func taker(c jetstream.ConsumerConfig) string {
	if c.AckPolicy == jetstream.AckExplicitPolicy {
		return fromWorker
	}
	return fromServer
}

// expected is how many messages on the tape a consumer gets.
func (t *tape) expected(stream int, c jetstream.ConsumerConfig) (n int) {
	filters := c.FilterSubjects
	if c.FilterSubject != "" {
		filters = append(filters, c.FilterSubject)
	}
	for _, m := range t.Messages {
		wanted := len(filters) == 0
		for _, f := range filters {
			wanted = wanted || covers(f, m.Subject)
		}
		if m.Stream == stream && wanted {
			n++
		}
	}
	return n
}

// take opens a consumer like one of the run's, if it is this process's and gets any messages.
func (m *mover) take(ctx context.Context, stream int, c jetstream.ConsumerConfig) error {
	n := m.t.expected(stream, c)
	if n == 0 || taker(c) != m.from {
		return nil
	}
	m.left.Add(int64(n))
	conn, err := m.connect()
	if err != nil {
		return err
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	name := m.t.Streams[stream].Config.Name
	if c.DeliverSubject == "" {
		pull, err := js.CreateOrUpdateConsumer(ctx, name, c)
		if err != nil {
			return fmt.Errorf("consumer %s of %s: %w", c.Name, name, err)
		}
		_, err = pull.Consume(func(msg jetstream.Msg) {
			if err := msg.Ack(); err != nil {
				m.end(err)
			}
			m.moved()
		}, jetstream.PullMaxMessages(512))
		return err
	}
	c.DeliverSubject = conn.NewRespInbox()
	push, err := js.CreateOrUpdatePushConsumer(ctx, name, c)
	if err != nil {
		return fmt.Errorf("consumer %s of %s: %w", c.Name, name, err)
	}
	_, err = push.Consume(func(msg jetstream.Msg) {
		if c.AckPolicy != jetstream.AckNonePolicy {
			if err := msg.Ack(); err != nil {
				m.end(err)
			}
		}
		m.moved()
	})
	return err
}

// move returns when everything is published, acknowledged and taken.
func (m *mover) move(ctx context.Context) error {
	if m.left.Load() == 0 {
		m.end(nil)
	}
	for _, l := range m.lanes {
		go m.publish(ctx, l)
	}
	select {
	case err := <-m.done:
		for _, c := range m.conns {
			err = errors.Join(err, c.Flush()) // the last acknowledgements
		}
		return err
	case <-ctx.Done():
		return fmt.Errorf("%s: %d messages are left to move: %w", m.from, m.left.Load(), context.Cause(ctx))
	}
}

func (m *mover) publish(ctx context.Context, l *lane) {
	for i, msg := range l.all {
		select {
		case l.window <- struct{}{}:
		case <-ctx.Done():
			return
		}
		out := &nats.Msg{Subject: msg.Subject, Reply: l.inbox + strconv.Itoa(i), Data: msg.Body}
		if err := l.conn.PublishMsg(out); err != nil {
			m.end(err)
			return
		}
	}
}

func (m *mover) acknowledged(l *lane, a *nats.Msg) {
	if bytes.Contains(a.Data, []byte(`"error"`)) || !bytes.Contains(a.Data, []byte(`"stream"`)) {
		m.end(fmt.Errorf("a message was not stored: %q %v", a.Data, a.Header))
		return
	}
	<-l.window
	m.moved()
}

func (m *mover) moved() {
	if m.left.Add(-1) == 0 {
		m.end(nil)
	}
}

func (m *mover) end(err error) {
	select {
	case m.done <- err:
	default:
	}
}

func (m *mover) close() {
	var wg sync.WaitGroup
	for _, c := range m.conns {
		wg.Go(c.Close)
	}
	wg.Wait()
}
