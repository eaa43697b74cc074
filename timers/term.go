package timers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/clock"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// lastWait bounds what a planned stop waits for.
const lastWait = 300 * time.Millisecond

// term is one tenure of the claim on a partition's alarms. It begins with nothing in memory.
type term struct {
	*Worker
	partition int
	lease     *claims.Lease
	log       logrus.FieldLogger
	clock     clock.Server // of the leader of the inbox, which stamps the rings
	outbox    *natsconn.Outbox
	wake      chan struct{} // the queue's head or the clock has changed, or a ring got its outcome
	doubt     chan struct{} // the owner has refused rings
	dirty     chan struct{} // there is tombstone
	read      schemas.Alarm // the last one; of the reader alone

	mu         sync.Mutex
	prefix     string // of the alarms' subjects; the book has the rest
	alarmIndex alarmIndex
	full       bool // the book is: not all alarms are in it
	flying     int
	waiting    bool      // what is due waits for an outcome
	lastFired  time.Time // when something was taken off the book last
	failing    bool
	epoch      int         // counts reconnects
	tombstones []tombstone // to delete
	// sweeping says that some of them are being deleted.
	sweeping bool
	// noPurge: the server does not let us. finishing: the term ends as planned.
	noPurge, finishing bool
	hurry              chan struct{} // closed then

	direct direct // to the owner
}

func newTerm(w *Worker, partition int, l *claims.Lease) *term {
	return &term{
		Worker: w, partition: partition, lease: l, log: w.log.WithField("partition", partition),
		prefix:     strings.TrimSuffix(w.ns.AllAlarms(partition), ">"),
		alarmIndex: newAlarmIndex(w.mostAlarms), wake: make(chan struct{}, 1),
		doubt: make(chan struct{}, 1), dirty: make(chan struct{}, 1), hurry: make(chan struct{}),
	}
}

// run rings the partition's alarms until ctx ends or the alarm stream can no longer be followed.
func (s *term) run(ctx context.Context) (err error) {
	if s.outbox, err = s.conn.NewOutbox(natsconn.OutboxOptions{}); err != nil {
		return err
	}
	defer s.outbox.Close()
	hangUp, err := s.listen()
	if err != nil {
		return err
	}
	defer hangUp()
	// outlives ctx until the last deletions are done
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel()
	defer s.conn.OnReconnect(s.reconnected)()
	helpers.Go(func() { s.watchClock(own) })
	helpers.Go(func() { s.sweep(own) })
	stream := s.ns.StreamAlarms(s.partition)
	reader, err := s.conn.Read(ctx, stream, natsconn.ReadOptions{}, s.take)
	if err != nil {
		return fmt.Errorf("alarms: %w", err)
	}
	defer func() { reader.Close(); <-reader.Done() }()
	s.log.WithField("number", s.lease.Number()).Info("ringing the alarms of a partition")
	defer s.opts.Stats.Ring(s.partition, s.pending)()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			s.finish()
			return nil
		case <-reader.Done():
			return fmt.Errorf("alarms: stream %s: %w", stream,
				errors.Join(natsconn.ErrClosed, reader.Err()))
		case <-s.wake:
		case <-timer.C:
		}
		if !s.lease.Valid() {
			return s.lease.Err()
		}
		if s.overflows() {
			return fmt.Errorf(
				"alarms: stream %s has more than %d runs with one: give the namespace more partitions",
				stream, s.mostAlarms)
		}
		wait, more := s.fireDue()
		if more {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
	}
}

// pending is how many alarms are known.
func (s *term) pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alarmIndex.alarms.Len()
}

// overflows tells whether there are alarms that the book has no room for: then none of them may be
// thought to be in it.
func (s *term) overflows() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.full
}

// finish waits, at a planned stop, until what was rung is deleted, so that the next holder does not
// ring it again. It does not wait long: ringing twice is harmless.
func (s *term) finish() {
	s.mu.Lock()
	s.finishing = true
	s.mu.Unlock()
	close(s.hurry)
	enough := time.NewTimer(lastWait)
	defer enough.Stop()
	for s.lease.Valid() && s.busy() {
		select {
		case <-s.wake:
		case <-s.lease.Done():
		case <-enough.C:
			return
		}
	}
}

func (s *term) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flying > 0 || s.sweeping || len(s.tombstones) > 0
}

// take notes an alarm that was read. A later one on the same subject replaces it.
func (s *term) take(m natsconn.Stored) {
	due, fence, err := s.decode(m)
	if err != nil {
		s.discard(tombstone{seq: m.Seq, letter: &m, cause: err})
		return
	}
	s.mu.Lock()
	first, ok := s.alarmIndex.note(nameOf(strings.TrimPrefix(m.Subject, s.prefix)), m.Seq, fence,
		int64(due))
	s.full = s.full || !ok
	s.mu.Unlock()
	if first || !ok {
		kick(s.wake)
	}
}

func (s *term) decode(m natsconn.Stored) (due schemas.Timestamp, fence uint64, err error) {
	partition, _, run, err := subject.ParseAlarm(m.Subject)
	if err != nil {
		return 0, 0, err
	}
	a := &s.read
	*a = schemas.Alarm{}
	if err := schemas.UnmarshalOwned(m.Data, a); err != nil { // nothing of it is kept
		return 0, 0, err
	}
	switch {
	case !strings.HasPrefix(m.Subject, s.prefix): // which names both
		return 0, 0, fmt.Errorf(
			"the subject names partition %d, the stream is that of partition %d of namespace %s",
			partition, s.partition, s.ns)
	case a.Run != run:
		return 0, 0, fmt.Errorf("the alarm is for run %q, its subject names run %q", a.Run, run)
	case a.Due <= 0:
		return 0, 0, fmt.Errorf("the alarm has no due time")
	}
	return a.Due, a.Fence, nil
}

func kick(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
