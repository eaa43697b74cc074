package natsconn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// consumerConfig is the part of the server's consumer configuration that readers use.
type consumerConfig struct {
	Name              string   `json:"name"`
	Description       string   `json:"description"`
	DeliverSubject    string   `json:"deliver_subject"`
	DeliverPolicy     string   `json:"deliver_policy"`
	OptStartSeq       uint64   `json:"opt_start_seq,omitempty"`
	AckPolicy         string   `json:"ack_policy"`
	ReplayPolicy      string   `json:"replay_policy"`
	FilterSubject     string   `json:"filter_subject,omitempty"`
	FilterSubjects    []string `json:"filter_subjects,omitempty"`
	FlowControl       bool     `json:"flow_control"`
	Heartbeat         int64    `json:"idle_heartbeat"`
	HeadersOnly       bool     `json:"headers_only,omitempty"`
	InactiveThreshold int64    `json:"inactive_threshold"`
	MemoryStorage     bool     `json:"mem_storage"`
	Replicas          int      `json:"num_replicas"`
	MaxDeliver        int      `json:"max_deliver"`
	RateLimit         uint64   `json:"rate_limit_bps,omitempty"` // bits
}

type createRequest struct {
	Stream string         `json:"stream_name"`
	Config consumerConfig `json:"config"`
	Action string         `json:"action"`
}

type createResponse struct {
	answer
	Pending uint64 `json:"num_pending"`
}

// config is the consumer that goes on after last.
func (r *Reader) config(name, inbox string, last uint64, reported bool) consumerConfig {
	cfg := consumerConfig{
		Name: name, Description: "drover reader", DeliverSubject: inbox, DeliverPolicy: "all",
		AckPolicy: "none", ReplayPolicy: "instant", FlowControl: true, Heartbeat: int64(heartbeat),
		HeadersOnly: r.opts.HeadersOnly, InactiveThreshold: int64(inactiveAfter),
		MemoryStorage: true, Replicas: 1, MaxDeliver: 1,
		RateLimit: 8 * uint64(r.opts.BytesPerSecond),
	}
	switch {
	case r.opts.LastPerSubject && !reported:
		// Interrupted before the end: begin again, receive skips what fn has.
		cfg.DeliverPolicy = "last_per_subject"
	case last > 0:
		cfg.DeliverPolicy, cfg.OptStartSeq = "by_start_sequence", last+1
	}
	switch {
	case len(r.opts.FilterSubjects) == 1:
		cfg.FilterSubject = r.opts.FilterSubjects[0]
	case len(r.opts.FilterSubjects) == 0 && cfg.DeliverPolicy == "last_per_subject":
		cfg.FilterSubject = ">" // this policy demands a filter
	default:
		cfg.FilterSubjects = r.opts.FilterSubjects
	}
	return cfg
}

// open makes a consumer and listens to it.
func (r *Reader) open(ctx context.Context) error {
	inbox := r.conn.nc.NewInbox()
	name := "drover_reader_" + inbox[strings.LastIndexByte(inbox, '.')+1:] // as unique as the inbox
	r.turn.lock()
	defer r.turn.unlock()
	r.serial++
	serial := r.serial
	sub, err := r.conn.nc.Subscribe(inbox, func(m *nats.Msg) { r.receive(serial, m) })
	if err != nil {
		return fmt.Errorf("stream %s: %w", r.stream, fromNATS(err))
	}
	cfg := r.config(name, inbox, r.last, r.reported)
	op := "CONSUMER.CREATE." + r.stream + "." + name
	if cfg.FilterSubject != "" {
		// the server wants a single filter in the subject, for permissions
		op += "." + cfg.FilterSubject
	}
	// Flow control bounds what waits here, in bytes; a limit of messages would drop some.
	err = sub.SetPendingLimits(-1, -1)
	var resp createResponse
	if err == nil {
		err = r.conn.call(ctx, op, createRequest{r.stream, cfg, "create"}, &resp)
	}
	if err != nil {
		r.serial++ // it may have been made all the same, and what it has sent waits for the turn
		_ = sub.Unsubscribe()
		if errors.Is(err, ErrManyConsumers) {
			err = fmt.Errorf("%w: %s", err, ConsumersHint)
		}
		return fmt.Errorf("stream %s: %w", r.stream, err)
	}
	r.sub, r.name, r.sequence, r.seen = sub, name, 0, time.Now()
	if resp.Pending == 0 {
		r.reachedEnd()
	}
	return nil
}
