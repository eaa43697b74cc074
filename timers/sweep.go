package timers

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

const (
	sweepers   = 8 // of what must be looked at first
	sweepAgain = 2 * time.Second
	// sweepPause is how long tombstones are gathered. Until nothing has rung for sweepRest nothing
	// is deleted by itself as long as there are no more than fewTombstones, and none for longer
	// than sweepLimit: where sleepers are rung nearly in order, a purge takes most of them soon.
	// Else sweepShare are deleted, and of more than mostTombstones what is above: a worker that
	// dies leaves them to be rung once more.
	sweepPause     = 100 * time.Millisecond
	sweepRest      = time.Second
	sweepLimit     = 2 * time.Second // the audit takes alarms for overdue after five
	turnLimit      = 4 * time.Second // after it nobody waits for a turn
	sweepShare     = 100
	fewTombstones  = 1024
	mostTombstones = 4096
	// worthPurge is how many deletions a purge must spare. The server writes the state of the whole
	// stream after each, which for some 60 alarms takes as long as one deletion: so many alarms
	// that stay cost one deletion more (staysPerDeletion). Meanwhile a purge waits until it removes
	// a share of what stays (purgeShare): ten a second, each after the writing of 25,000 alarms,
	// took a sixth of the server's time while 100,000 sleepers woke.
	worthPurge       = 32
	staysPerDeletion = 64
	purgeShare       = 4
	// buryLimit bounds one try of a dead letter, so that a missing stream does not keep rung alarms
	// from being deleted.
	buryLimit = 5 * time.Second
)

// tombstone is an alarm message to delete.
type tombstone struct {
	seq     uint64
	subject string
	due     int64
	epoch   int

	// not nil: it cannot be read, and becomes a dead letter first; the book has a pin for it
	letter *natsconn.Stored
	cause  error
}

// discard hands tombstone to the sweeper. It does not block.
func (s *term) discard(sc tombstone) {
	s.mu.Lock()
	sc.epoch = s.epoch
	if sc.letter != nil {
		s.alarmIndex.pin(sc.seq)
	}
	s.tombstones = append(s.tombstones, sc)
	s.mu.Unlock()
	kick(s.dirty)
}

// reconnected makes the sweeper look twice at what it was to delete: the server may have been
// restarted, may have lost its unsynced tail, and may have given the sequence to another alarm
// since (P-9).
func (s *term) reconnected() {
	s.mu.Lock()
	s.epoch++
	s.mu.Unlock()
	s.giveUp(false)
}

// sweep deletes what was rung, until ctx ends. What is left over then is rung once more by the next
// holder.
//
// A deletion costs the server more than half of what the ring does, and nobody waits for it. So
// rings go first: tombstones are gathered for a moment, purged if nothing that is needed stands
// before them in the stream, and else deleted a few at a time as long as alarms ring, unless there
// are too many.
func (s *term) sweep(ctx context.Context) {
	var since time.Time // when the oldest of the tombstones was found
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.dirty:
		}
		gather := time.NewTimer(sweepPause)
		select {
		case <-gather.C:
		case <-s.hurry:
		case <-ctx.Done():
		}
		gather.Stop()
		s.mu.Lock()
		batch := s.tombstones
		s.tombstones, s.sweeping = nil, len(batch) > 0
		s.mu.Unlock()
		if since.IsZero() {
			since = time.Now()
		}
		age := time.Since(since)
		batch, waiting := s.purge(ctx, batch, age)
		batch, later := s.share(batch, age >= sweepLimit)
		s.look(ctx, s.eraseAll(ctx, batch))
		later = append(waiting, later...)
		s.mu.Lock()
		s.tombstones = append(later, s.tombstones...)
		s.sweeping = false
		s.mu.Unlock()
		if len(later) > 0 {
			kick(s.dirty)
		} else {
			since = time.Time{}
		}
		kick(s.wake)
	}
}

// fires tells whether alarms ring, or have just rung: between two of them there may be nothing to
// wait for. The caller holds mu.
func (s *term) fires() bool {
	return !s.finishing && (s.flying > 0 || time.Since(s.lastFired) < sweepRest)
}

// share divides tombstones into those to delete now and those for later.
func (s *term) share(batch []tombstone, old bool) (now, later []tombstone) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	switch {
	case !s.fires():
		return batch, nil
	case len(batch) > mostTombstones:
		n = len(batch) - mostTombstones + sweepShare
	case len(batch) > fewTombstones || old:
		n = min(len(batch), sweepShare)
	}
	return batch[:n], batch[n:]
}

// purge removes everything before the first alarm that is needed, if that is worth its while, and
// returns what is left to delete, and what waits for a purge that is. A stream that may have lost
// its end since it was read is left alone: there may be other alarms on those numbers. One server
// loses nothing while the connection lives; of several it is not known.
func (s *term) purge(
	ctx context.Context, batch []tombstone, age time.Duration,
) (rest, waiting []tombstone) {
	s.mu.Lock()
	keep, stays := s.alarmIndex.lowest(), s.alarmIndex.alarms.Len()
	may, fires := s.epoch == 0 && !s.noPurge, s.fires()
	s.mu.Unlock()
	if !may || !s.lease.Valid() || s.conn.NATS().ConnectedClusterName() != "" {
		return batch, nil
	}
	waiting = batch[:0] // in its place: it is most of the batch, and looked at again and again
	for _, sc := range batch {
		if sc.seq >= keep || sc.epoch != 0 || sc.letter != nil {
			rest = append(rest, sc)
		} else {
			waiting = append(waiting, sc)
		}
	}
	switch n := len(waiting); {
	case fires && age < sweepLimit && n < max(worthPurge, stays/purgeShare):
		return rest, waiting
	case n < worthPurge+stays/staysPerDeletion:
		return append(waiting, rest...), nil
	}
	began := time.Now()
	if s.purges.take(began) {
		defer func() { s.purges.done(began, time.Now()) }()
	} else if fires && age < turnLimit {
		return rest, waiting
	}
	purged := make(chan error, 1)
	s.outbox.PurgeBelow(s.ns.StreamAlarms(s.partition), keep, func(err error) { purged <- err })
	select {
	case err := <-purged:
		if err == nil {
			return rest, nil
		}
		s.log.WithField("err", err).Debug("rung alarms cannot be purged; deleting each")
		s.mu.Lock()
		s.noPurge = true
		s.mu.Unlock()
	case <-ctx.Done():
	}
	return append(waiting, rest...), nil
}

// look deletes what must be looked at first.
func (s *term) look(ctx context.Context, slow []tombstone) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(sweepers, len(slow)) {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(len(slow)) && s.lease.Valid() && ctx.Err() == nil; i = next.Add(1) {
				s.remove(ctx, slow[i-1])
			}
		})
	}
	wg.Wait()
}

// eraseAll deletes what needs no look, and returns the rest.
func (s *term) eraseAll(ctx context.Context, batch []tombstone) (slow []tombstone) {
	stream, window := s.ns.StreamAlarms(s.partition), make(chan struct{}, natsconn.DeletesAtOnce)
	for _, sc := range batch {
		s.mu.Lock()
		same := sc.letter == nil && sc.epoch == s.epoch
		s.mu.Unlock()
		if !same {
			slow = append(slow, sc)
			continue
		}
		select {
		case window <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		if !s.lease.Valid() {
			return nil
		}
		s.outbox.Delete(stream, sc.seq, func(err error) {
			<-window
			s.removed(ctx, sc, err)
		})
	}
	for range natsconn.DeletesAtOnce {
		select {
		case window <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
	}
	return slow
}

// remove deletes one message, by its sequence.
func (s *term) remove(ctx context.Context, sc tombstone) {
	err := s.bury(ctx, sc)
	if err == nil {
		err = s.delete(ctx, sc)
	}
	s.removed(ctx, sc, err)
}

// removed takes the outcome of a deletion. One that failed is tried again for as long as the term
// lasts.
func (s *term) removed(ctx context.Context, sc tombstone, err error) {
	if err == nil || errors.Is(err, natsconn.ErrNotFound) || ctx.Err() != nil {
		if sc.letter != nil {
			s.mu.Lock()
			s.alarmIndex.unpin(sc.seq)
			s.mu.Unlock()
		}
		return
	}
	s.log.WithField("seq", sc.seq).WithField("err", err).
		Debug("an alarm message was not deleted; trying again")
	time.AfterFunc(sweepAgain, func() {
		if ctx.Err() == nil {
			sc.epoch = neverSeen
			s.mu.Lock()
			s.tombstones = append(s.tombstones, sc)
			s.mu.Unlock()
			kick(s.dirty)
		}
	})
}

// neverSeen is the epoch of tombstone that is looked at before it is deleted.
const neverSeen = -1

func (s *term) delete(ctx context.Context, sc tombstone) error {
	stream := s.ns.StreamAlarms(s.partition)
	s.mu.Lock()
	same := sc.epoch == s.epoch
	s.mu.Unlock()
	if !same {
		m, err := s.conn.GetSeq(ctx, stream, sc.seq)
		if err != nil || !sc.is(m) {
			return err
		}
	}
	return s.conn.DeleteMsg(ctx, stream, sc.seq)
}

// is tells whether a message is the one that the tombstone speaks of.
func (sc *tombstone) is(m *natsconn.Stored) bool {
	if sc.letter != nil {
		return m.Subject == sc.letter.Subject && m.Time.Equal(sc.letter.Time)
	}
	var a schemas.Alarm
	return m.Subject == sc.subject && schemas.Unmarshal(m.Data, &a) == nil && int64(a.Due) == sc.due
}

// bury writes the dead letter of an alarm that cannot be read.
func (s *term) bury(ctx context.Context, sc tombstone) error {
	if sc.letter == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, buryLimit)
	defer cancel()
	m := sc.letter
	s.log.WithField("seq", m.Seq).WithField("err", sc.cause).
		Warn("an alarm that cannot be read goes to the dead letters")
	place := dead.Place{
		Partition: strconv.Itoa(s.partition), Stream: "alarms",
		Incarnation: dead.Digest(m.Subject, m.Data), Sequence: m.Seq,
	}
	return dead.Bury(ctx, s.conn, s.ns, place, schemas.DeadLetter{
		Reason: dead.ReasonUndecodableAlarm, Details: sc.cause.Error(), Subject: m.Subject,
		Time: schemas.At(m.Time), Body: m.Data,
	})
}
