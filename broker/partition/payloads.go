package partition

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

const (
	firstSpillRetry = 50 * time.Millisecond
	lastSpillRetry  = 2 * time.Second
)

// mostLarge is how many parts of a message may be large, see opened.payloads.
const mostLarge = 2

// spill moves payloads that came in whole, above the threshold or too large for a decider who has
// only JSON, into the object store, before any record can name them. It runs on the reader's
// goroutine, so that the loop waits for nothing, and returns when it is done: after a message whose
// payload is not stored the log must not advance. It tells whether that was before ctx ended.
//
// The object is named by where the message stands in its log, not by an id of this process: whoever
// reads the message again finds the object and names it again.
func (p *Partition) spill(ctx context.Context, in *intake.Log, m natsconn.Stored, o *opened) bool {
	if len(m.Data) <= p.b.SmallBody() || o.err != nil {
		return true
	}
	fields := o.payloads()
	moved := p.b.Excess(fields, len(m.Data))
	for i, field := range fields {
		if !slices.Contains(moved, field) {
			continue
		}
		fits := len(m.Data)-o.spilled <= p.b.MessageLimit() && p.b.Outgrows(*field) == 0
		ref, ok := p.store(ctx, objectName(p.n, in.Number, m, i), *field, fits)
		if !ok {
			return false
		}
		if ref == nil {
			continue
		}
		o.spilled += len(*field)
		*field = schemas.RefPayload(ref)
	}
	if s, ok := o.Event.(execution.Signal); ok {
		// a value, so the field that was changed is that of the signal below
		s.Input = o.signal
		if s.External != nil {
			s.External.Input = o.signal
		}
		o.Event = s
	}
	if o.spilled > 0 {
		o.spilled = max(len(m.Data)-o.left(), 0) // in JSON it took more than it has
	}
	return true
}

// left is how many bytes a message takes once parts of it stand in the store.
func (o *opened) left() int {
	var v any = o.request
	switch msg := o.Event.(type) {
	case execution.Start:
		v = msg.Request
	case execution.Signal:
		return len(msg.Input) // what else there is of it is small
	case execution.Report:
		v = msg.Report
	case execution.Child:
		v = msg.Report
	}
	body, err := schemas.Marshal(v)
	if err != nil {
		return len(o.Body)
	}
	return len(body)
}

// store stores an object, and tries until it is stored or ctx ends. If the store is full, and the
// data fits a record, it returns nil: the log must not wait for room, since what makes some is read
// from it.
func (p *Partition) store(
	ctx context.Context, object string, data []byte, fits bool,
) (*schemas.PayloadRef, bool) {
	for wait := firstSpillRetry; ; wait = min(2*wait, lastSpillRetry) {
		once, cancel := context.WithTimeout(ctx, env.ReadTimeout)
		ref, err := p.b.Store.Put(once, object, data)
		cancel()
		if err == nil {
			return ref, true
		}
		if fits && errors.Is(err, natsconn.ErrFull) {
			return nil, true
		}
		if ctx.Err() == nil {
			p.log.WithError(err).
				WithField("object", object).Warn("a large payload cannot be stored; its log waits")
		}
		if sleep.For(ctx, wait) != nil {
			return nil, false
		}
	}
}

// objectName tells messages apart over all incarnations of a log: two with the same sequence differ
// in time.
func objectName(partition, log int, m natsconn.Stored, field int) string {
	return fmt.Sprintf("%s-%d-%d-%s-%d", [...]string{"in", "signals"}[log], partition, m.Seq,
		strconv.FormatInt(m.Time.UnixNano(), 36), field)
}

// SpillNames are the names of the objects into which brokers may have moved parts of a message in a
// log of partition p; signals tells which log. While the message is there it names them, though it
// holds the parts themselves: whoever reads it again names the same objects again. Nil if it is too
// small for any.
func SpillNames(p int, signals bool, m natsconn.Stored) []string {
	if len(m.Data) <=
		payloads.InlineLimit(0)/env.SmallPart { // whatever the server took at that time
		return nil
	}
	log := 0
	if signals {
		log = 1
	}
	names := make([]string, mostLarge)
	for i := range names {
		names[i] = objectName(p, log, m, i)
	}
	return names
}

// payloads are the parts of a message that may be large, always in the same order.
func (o *opened) payloads() []*schemas.Payload {
	switch msg := o.Event.(type) {
	case execution.Start:
		fields := []*schemas.Payload{&msg.Request.Input}
		if msg.Request.Signal != nil {
			fields = append(fields, &msg.Request.Signal.Input)
		}
		return fields
	case execution.Signal:
		o.signal = msg.Input
		return []*schemas.Payload{&o.signal}
	case execution.Report:
		return []*schemas.Payload{&msg.Report.Result, &msg.Report.Details}
	case execution.Child:
		return []*schemas.Payload{&msg.Report.Result, &msg.Report.Details}
	}
	if o.request != nil {
		return []*schemas.Payload{&o.request.Details}
	}
	return nil
}
