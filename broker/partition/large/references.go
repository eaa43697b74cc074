package large

import (
	"context"
	"errors"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// What a reference names has to be in the store before it gets into a history: a decider that reads
// an event whose payload is not there, as flows do, fails each time, so the run would be stopped
// for good. Size and digest have to fit as well, so whoever does not know a payload cannot have it
// shown to a run.

// LookUp looks for what a signal or an outcome names, which others than brokers have published. It
// comes before [Large.Spill], and like that runs on the reader's goroutine and tells whether it
// came to an end before ctx did. What was applied before is known by its position and judged no
// more.
func (l *Large) LookUp(ctx context.Context, in *intake.Log, o *actor.Opened) bool {
	if o.Err != nil {
		return true
	}
	switch m := o.Event.(type) {
	case execution.Signal:
		if in.Number == intake.Inbox { // a workflow's
			return true
		}
		bad, ok := l.nothing(ctx, m.Input)
		if bad != "" {
			m.Bad = "the body " + bad
			o.Event = m
		}
		return ok
	case execution.Report:
		for _, f := range [...]struct {
			field   string
			payload schemas.Payload
		}{{"result", m.Report.Result}, {"details", m.Report.Details}} {
			bad, ok := l.nothing(ctx, f.payload)
			if !ok {
				return false
			}
			if bad != "" {
				m.Bad = f.field + " " + bad
				o.Event = m
			}
		}
	}
	return true
}

// nothing says what is wrong with a payload that is a reference to nothing. It is not ok if ctx
// ended before that was known.
func (l *Large) nothing(ctx context.Context, payload schemas.Payload) (bad string, ok bool) {
	ref, is := payload.Ref()
	if !is {
		return "", true
	}
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		once, cancel := context.WithTimeout(ctx, env.ReadTimeout)
		err := l.Env.Store.Check(once, ref)
		cancel()
		switch {
		case err == nil:
			return "", true
		case IsNothing(err):
			return "is a reference to nothing: " + err.Error(), true
		case ctx.Err() == nil:
			l.Log.WithError(err).WithField("object", ref.Object).
				Warn("a large payload cannot be looked for; its log waits")
		}
		if sleep.For(ctx, wait) != nil {
			return "", false
		}
	}
}

// IsNothing tells whether a reference is to what is not there, and never will be: objects come
// before what names them.
func IsNothing(err error) bool {
	return errors.Is(err, natsconn.ErrNotFound) || errors.Is(err, payloads.ErrDamaged)
}
