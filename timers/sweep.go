package timers

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/schemas"
)

const (
	sweepers = 8 // of what must be looked at first
	// erasing bounds the other deletions that are on their way: the server keeps one queue of such requests for everybody,
	// and empties it when 10,000 wait.
	erasing    = 64
	sweepAgain = 2 * time.Second
	// buryLimit bounds one try of a dead letter, so that a missing stream does not keep rung alarms from being deleted.
	buryLimit = 5 * time.Second
)

// scrap is an alarm message to delete.
type scrap struct {
	seq     uint64
	subject string
	due     int64
	epoch   int

	letter *post.Stored // not nil: it cannot be read, and becomes a dead letter first
	cause  error
}

// discard hands scrap to the sweeper. It does not block.
func (s *spell) discard(sc scrap) {
	s.mu.Lock()
	sc.epoch = s.epoch
	s.scraps = append(s.scraps, sc)
	s.mu.Unlock()
	kick(s.dirty)
}

// reconnected makes the sweeper look twice at what it was to delete: the server may have been restarted, may have lost
// its unsynced tail, and may have given the sequence to another alarm since (P-9).
func (s *spell) reconnected() {
	s.mu.Lock()
	s.epoch++
	s.mu.Unlock()
	s.giveUp(false)
}

// sweep deletes what was rung, until ctx ends. What is left over then is rung once more by the next holder.
func (s *spell) sweep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.dirty:
		}
		s.mu.Lock()
		batch := s.scraps
		s.scraps, s.sweeping = nil, len(batch) > 0
		s.mu.Unlock()
		slow := s.eraseAll(ctx, batch)
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
		s.mu.Lock()
		s.sweeping = false
		s.mu.Unlock()
		kick(s.wake)
	}
}

// eraseAll deletes what needs no look, and returns the rest.
func (s *spell) eraseAll(ctx context.Context, batch []scrap) (slow []scrap) {
	stream, window := s.ns.StreamAlarms(s.partition), make(chan struct{}, erasing)
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
	for range erasing {
		select {
		case window <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
	}
	return slow
}

// remove deletes one message, by its sequence.
func (s *spell) remove(ctx context.Context, sc scrap) {
	err := s.bury(ctx, sc)
	if err == nil {
		err = s.delete(ctx, sc)
	}
	s.removed(ctx, sc, err)
}

// removed takes the outcome of a deletion. One that failed is tried again for as long as the spell lasts.
func (s *spell) removed(ctx context.Context, sc scrap, err error) {
	if err == nil || errors.Is(err, post.ErrNotFound) || ctx.Err() != nil {
		return
	}
	s.log.WithField("seq", sc.seq).WithField("err", err).Debug("an alarm message was not deleted; trying again")
	time.AfterFunc(sweepAgain, func() {
		if ctx.Err() == nil {
			sc.epoch = neverSeen
			s.mu.Lock()
			s.scraps = append(s.scraps, sc)
			s.mu.Unlock()
			kick(s.dirty)
		}
	})
}

// neverSeen is the epoch of scrap that is looked at before it is deleted.
const neverSeen = -1

func (s *spell) delete(ctx context.Context, sc scrap) error {
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

// is tells whether a message is the one that the scrap speaks of.
func (sc *scrap) is(m *post.Stored) bool {
	if sc.letter != nil {
		return m.Subject == sc.letter.Subject && m.Time.Equal(sc.letter.Time)
	}
	var a schemas.Alarm
	return m.Subject == sc.subject && schemas.Unmarshal(m.Data, &a) == nil && int64(a.Due) == sc.due
}

// bury writes the dead letter of an alarm that cannot be read.
func (s *spell) bury(ctx context.Context, sc scrap) error {
	if sc.letter == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, buryLimit)
	defer cancel()
	m := sc.letter
	s.log.WithField("seq", m.Seq).WithField("err", sc.cause).Warn("an alarm that cannot be read goes to the dead letters")
	place := dead.Place{
		Partition: strconv.Itoa(s.partition), Stream: "alarms", Incarnation: dead.Digest(m.Subject, m.Data), Sequence: m.Seq,
	}
	return dead.Bury(ctx, s.conn, s.ns, place, schemas.DeadLetter{
		Reason: dead.ReasonUndecodableAlarm, Details: sc.cause.Error(), Subject: m.Subject, Time: schemas.At(m.Time), Body: m.Data,
	})
}
