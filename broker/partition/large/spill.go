package large

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// mostLarge is how many parts of a message may be large, see payloadsOf.
const mostLarge = 2

// Spill moves payloads that came in whole, above the threshold or too large for a decider who has
// only JSON, into the object store, before any record can name them. It runs on the reader's
// goroutine, so that the loop waits for nothing, and returns when it is done: after a message whose
// payload is not stored the log must not advance. It tells whether that was before ctx ended.
//
// The object is named by where the message stands in its log, not by an id of this process: whoever
// reads the message again finds the object and names it again.
func (l *Large) Spill(
	ctx context.Context, in *intake.Log, m natsconn.Stored, o *actor.Opened,
) bool {
	if len(m.Data) <= l.Env.SmallBody() || o.Err != nil {
		return true
	}
	var signal schemas.Payload
	fields := payloadsOf(o, &signal)
	moved := l.Env.Excess(fields, len(m.Data))
	for i, field := range fields {
		if !slices.Contains(moved, field) {
			continue
		}
		fits := len(m.Data)-o.Spilled <= l.Env.MessageLimit() && l.Env.Outgrows(*field) == 0
		ref, ok := l.store(ctx, objectName(l.Partition, in.Number, m, i), *field, fits)
		if !ok {
			return false
		}
		if ref == nil {
			continue
		}
		o.Spilled += len(*field)
		*field = schemas.RefPayload(ref)
	}
	if s, ok := o.Event.(execution.Signal); ok {
		// a value, so what was changed is not its field
		s.Input = signal
		if s.External != nil {
			s.External.Input = signal
		}
		o.Event = s
	}
	if o.Spilled > 0 {
		o.Spilled = max(len(m.Data)-left(o), 0) // in JSON it took more than it has
	}
	return true
}

// left is how many bytes a message takes once parts of it stand in the store.
func left(o *actor.Opened) int {
	var v any = o.Request
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
func (l *Large) store(
	ctx context.Context, object string, data []byte, fits bool,
) (*schemas.PayloadRef, bool) {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		once, cancel := context.WithTimeout(ctx, env.ReadTimeout)
		ref, err := l.Env.Store.Put(once, object, data)
		cancel()
		if err == nil {
			return ref, true
		}
		if fits && errors.Is(err, natsconn.ErrFull) {
			return nil, true
		}
		if ctx.Err() == nil {
			l.Log.WithError(err).WithField("object", object).
				Warn("a large payload cannot be stored; its log waits")
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

// payloadsOf are the parts of a message that may be large, always in the same order. signal is where
// the input of a signal is put, whose event is a value.
func payloadsOf(o *actor.Opened, signal *schemas.Payload) []*schemas.Payload {
	switch msg := o.Event.(type) {
	case execution.Start:
		fields := []*schemas.Payload{&msg.Request.Input}
		if msg.Request.Signal != nil {
			fields = append(fields, &msg.Request.Signal.Input)
		}
		return fields
	case execution.Signal:
		*signal = msg.Input
		return []*schemas.Payload{signal}
	case execution.Report:
		return []*schemas.Payload{&msg.Report.Result, &msg.Report.Details}
	case execution.Child:
		return []*schemas.Payload{&msg.Report.Result, &msg.Report.Details}
	}
	if o.Request != nil {
		return []*schemas.Payload{&o.Request.Details}
	}
	return nil
}
