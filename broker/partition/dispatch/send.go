package dispatch

import (
	"errors"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/env"
)

// Send publishes outside the history until it is acknowledged, then calls done with the sequence; 0
// if the message was there already. A task list whose stream is missing is made first.
func (d *Dispatch) Send(subj, list string, h natsconn.Header, body []byte, done func(seq uint64)) {
	d.SendUntil(subj, list, h, body, done, func(again func()) { again() })
}

// SendUntil is send for what may be wrong to publish again, since what became of the first is not
// known: retry is called in place of that, and calls again if it is to be.
func (d *Dispatch) SendUntil(
	subj, list string, h natsconn.Header, body []byte, done func(seq uint64),
	retry func(again func()),
) {
	if !d.host.CanWrite() {
		return
	}
	d.sending++
	d.host.Outside().Send(subj, h, body, func(a natsconn.Ack) {
		d.Loop.Post(func() {
			d.sending--
			again := func() { d.SendUntil(subj, list, h, body, done, retry) }
			var exists *natsconn.SequenceError
			switch {
			case a.Err == nil || errors.As(a.Err, &exists): // already there: it is written once
				done(a.Seq)
			case errors.Is(a.Err, natsconn.ErrNoStream) && list != "":
				d.openList(list, again)
			default:
				d.Log.WithError(a.Err).WithField("subject", subj).
					Warn("not acknowledged; publishing again")
				d.Loop.After(env.EffectRetry, func() { retry(again) })
			}
		})
	})
}
