package types

import (
	"context"
	"time"
)

// A type that is deleted leaves a mark in the bucket, and each broker keeps in mind that it is
// gone, so that an earlier revision which comes late does not bring it back. Neither may stay:
// those who register a type for each release would fill the bucket, which every broker reads when
// it starts. So an hour after it has seen a mark, a broker takes it away and forgets the type.

// markFor is how long a mark stays: the other brokers must have seen it by then.
const markFor = time.Hour

// mark is what the bucket has of a type that was deleted.
type mark struct {
	key  string
	rev  uint64
	seen time.Time // by this broker
}

func (t *Table) marked(m mark) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.marks = append(t.marks, m)
}

// tidy takes the marks away that are old. One that fails is tried again with the next tick.
func (t *Table) tidy(ctx context.Context, now time.Time) {
	for m, epoch, ok := t.oldMark(now); ok; m, epoch, ok = t.oldMark(now) {
		if err := t.erase(ctx, m); err != nil {
			if ctx.Err() == nil {
				t.o.Log.WithError(err).
					WithField("key", m.key).
					Debug("what is left of a deleted type cannot be taken away now")
			}
			return
		}
		t.forget(m, epoch)
	}
}

func (t *Table) oldMark(now time.Time) (m mark, epoch int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.marks) == 0 || now.Sub(t.marks[0].seen) < markFor {
		return m, 0, false
	}
	return t.marks[0], t.epoch, true
}

// erase purges a mark, unless the key has come to hold something else, or another broker was
// faster.
func (t *Table) erase(ctx context.Context, m mark) error {
	value, rev, err := t.o.Conn.KVLast(ctx, t.o.Bucket, m.key)
	if err != nil || value != nil || rev != m.rev {
		return err
	}
	return t.o.Conn.Purge(ctx, "KV_"+t.o.Bucket, "$KV."+t.o.Bucket+"."+m.key, rev+1)
}

func (t *Table) forget(m mark, epoch int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.epoch != epoch {
		return // the marks are those of another bucket now
	}
	if t.marks = t.marks[1:]; len(t.marks) == 0 {
		t.marks = nil
	}
	if e := t.entries[m.key]; e.info == nil && e.rev <= m.rev {
		delete(t.entries, m.key)
	}
}
