package natsconn

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// WorkState is how a work queue's consumer stands.
type WorkState struct {
	Pending int64 // never delivered
	Working int64 // delivered and not acknowledged, among them those whose lease is over
	Waiting int   // pull requests that wait for work
}

type consumerInfo struct {
	answer
	Pending    int64 `json:"num_pending"`
	AckPending int64 `json:"num_ack_pending"`
	Waiting    int   `json:"num_waiting"`
}

// WorkState asks how a consumer stands. One that does not exist is [ErrNoConsumer] or
// [ErrNoStream].
func (c *Conn) WorkState(ctx context.Context, stream, consumer string) (WorkState, error) {
	if err := checkName("stream", stream); err != nil {
		return WorkState{}, err
	}
	if err := checkName("consumer", consumer); err != nil {
		return WorkState{}, err
	}
	var i consumerInfo
	if err := c.call(ctx, "CONSUMER.INFO."+stream+"."+consumer, struct{}{}, &i); err != nil {
		return WorkState{}, err
	}
	return WorkState{Pending: i.Pending, Working: i.AckPending, Waiting: i.Waiting}, nil
}

// Take takes at most one task that the consumer can deliver now, first of all one whose lease is
// over. It reports false if there is none. The task must be settled; its lease is the consumer's
// AckWait. A user who may not take from the consumer gets a [*RefusedError].
func (c *Conn) Take(ctx context.Context, stream, consumer string) (t Task, ok bool, err error) {
	if err := checkName("stream", stream); err != nil {
		return t, false, err
	}
	if err := checkName("consumer", consumer); err != nil {
		return t, false, err
	}
	// A subscription of its own: the message comes with its own subject, by which a shared inbox
	// could not tell it.
	answers := make(chan *nats.Msg, 1)
	inbox := c.nc.NewInbox()
	sub, err := c.nc.Subscribe(inbox, func(m *nats.Msg) {
		select {
		case answers <- m:
		default:
		}
	})
	if err != nil {
		return t, false, fmt.Errorf("take from %s: %w", stream, fromNATS(err))
	}
	// it fails only when the connection is closed, and with it the subscription
	defer func() { _ = sub.Unsubscribe() }()
	m, err := c.exchange(ctx, 0, &nats.Msg{
		Subject: c.api + ".CONSUMER.MSG.NEXT." + stream + "." + consumer, Reply: inbox,
		Data: []byte(`{"batch":1,"no_wait":true}`),
	}, answers)
	if err != nil {
		return t, false, fmt.Errorf("take %w", err)
	}
	if m.Reply == "" {
		return t, false, nil // no messages, or no such consumer
	}
	d, err := parseDelivery(m.Reply)
	if err != nil {
		return t, false, err
	}
	return Task{Msg: c.msg(m), Seq: d.stream, Delivered: d.delivered, Time: d.time}, true, nil
}

// Consumers are those of a stream.
type Consumers struct {
	Infos []*jetstream.ConsumerInfo // in the order of their names
	// Silent are the names of those that are there and of which the cluster tells nothing at the
	// moment.
	Silent []string
}

// Has tells whether the stream has a consumer of a name, also one of which nothing is told.
func (c *Consumers) Has(name string) bool {
	return slices.Contains(c.Silent, name) ||
		slices.ContainsFunc(c.Infos, func(i *jetstream.ConsumerInfo) bool { return i.Name == name })
}

type consumerList struct {
	answer
	Total     int                       `json:"total"`
	Consumers []*jetstream.ConsumerInfo `json:"consumers"`
	Missing   []string                  `json:"missing"`
	Offline   map[string]string         `json:"offline"`
}

// Consumers lists the consumers of a stream. One that does not exist is [ErrNoStream].
func (c *Conn) Consumers(ctx context.Context, stream string) (*Consumers, error) {
	if err := checkName("stream", stream); err != nil {
		return nil, err
	}
	all := &Consumers{}
	for told := 0; ; {
		var page consumerList
		if err := c.call(ctx, "CONSUMER.LIST."+stream, map[string]int{"offset": told}, &page); err != nil {
			return nil, err
		}
		all.Infos = append(all.Infos, page.Consumers...)
		all.Silent = append(append(all.Silent, page.Missing...),
			slices.Sorted(maps.Keys(page.Offline))...)
		n := len(page.Consumers) + len(page.Missing) + len(page.Offline)
		if told += n; n == 0 || told >= page.Total {
			return all, nil
		}
	}
}

type streamNames struct {
	answer
	Total   int      `json:"total"`
	Streams []string `json:"streams"`
}

// StreamNames lists the streams whose subjects overlap with one.
func (c *Conn) StreamNames(ctx context.Context, subject string) ([]string, error) {
	var all []string
	for {
		req := struct {
			Subject string `json:"subject"`
			Offset  int    `json:"offset"`
		}{subject, len(all)}
		var page streamNames
		if err := c.call(ctx, "STREAM.NAMES", req, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Streams...)
		if len(page.Streams) == 0 || len(all) >= page.Total {
			return all, nil
		}
	}
}
