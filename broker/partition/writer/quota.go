package writer

import (
	"context"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/schemas"
)

// CheckQuota asks how full the history is, and its account, once in a while.
func (w *Writer) CheckQuota() {
	every := env.QuotaRarely
	if w.quota.Limit > 0 {
		every = env.QuotaEvery
	}
	if w.quota.Busy || time.Since(w.quota.Looked) < every {
		return
	}
	w.quota.Busy, w.quota.Looked = true, time.Now()
	env.WriteAsync(w.Env, w.Loop, func(ctx context.Context) (env.Quota, error) {
		return w.Env.ReadQuota(ctx, w.Env.NS.StreamHistory(w.Partition))
	}, func(now env.Quota, err error) {
		w.quota.Busy = false
		if err != nil {
			w.Log.WithError(err).Debug("the size of the history cannot be read now")
			return
		}
		was := w.quota.Full()
		w.quota.Account, w.quota.Limit, w.quota.Bytes = now.Account, now.Limit, now.Bytes
		if full := w.quota.Full(); full != was {
			w.Log.WithField("bytes", w.quota.Bytes).WithField("limit", w.quota.Limit).
				WithField("account", w.quota.Account).WithField("full", full).
				Warn("the room for new workflows has changed")
		}
	})
}

// Refusal is the refusal of what would fill the history.
func (w *Writer) Refusal() *schemas.Error {
	switch {
	case w.Env.ServerFull():
		return w.Env.ServerQuota.Load().ServerRefusal()
	case w.quota.Account:
		return w.quota.NoAccount()
	}
	return schemas.Errorf(schemas.CodeLimit, "the histories of namespace %q are full: partition "+
		"%d has %d of %d bytes", w.Env.Options.Namespace, w.Partition, w.quota.Bytes,
		w.quota.Limit).InField("maxBytes").
		WithHint("%s", natsconn.RoomHint(nil, w.Env.Options.Namespace))
}

// Full tells whether the partition takes no new runs and no signals.
func (w *Writer) Full() bool { return w.quota.Full() || w.Env.ServerFull() }

// FullWith is Full beside so many bytes more.
func (w *Writer) FullWith(bytes int) bool {
	now := w.quota
	now.Promised += int64(bytes)
	return now.Full() || w.Env.ServerFull()
}

// Promise counts bytes of a start that has begun and is not sent yet, until [Writer.Flushed].
func (w *Writer) Promise(bytes int) { w.quota.Promised += int64(bytes) }

// Flushed says that all that was begun is sent.
func (w *Writer) Flushed() { w.quota.Promised = 0 }

// Limited tells whether the history, or its account, has a limit.
func (w *Writer) Limited() bool { return w.quota.Limit > 0 }
