package timers

import (
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/compactmap"
	"github.com/droverhq/drover/schemas"
)

const (
	// maxFlying bounds the rings without outcome, and with them what the server has to queue.
	maxFlying = 4096
	// handful is how many alarms are taken off the queue at a time; the reader waits meanwhile.
	handful = 128
	// fireAgain is how long after a failure a ring is sent again.
	fireAgain = 500 * time.Millisecond
)

// fireDue rings everything whose time has come and tells how long to wait for the next; more is
// false if nothing is to be waited for but an outcome, the clock or a new alarm.
func (s *term) fireDue() (wait time.Duration, more bool) {
	var calls []call
	for {
		calls, wait, more = s.due(calls[:0])
		if len(calls) == 0 || !s.lease.Valid() {
			return wait, more
		}
		for _, c := range s.fireOwner(calls) {
			s.fire(c)
		}
	}
}

// call is one ring: what the alarm was when it was taken off the queue.
type call struct {
	id      compactmap.ID
	subject string
	seq     uint64
	fence   uint64
	due     int64
}

// due takes a handful of alarms off the queue.
func (s *term) due(calls []call) (due []call, wait time.Duration, more bool) {
	now := s.clock.Now(s.now())
	if now.IsZero() { // nothing is known of the server's clock yet
		return calls, 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	most, stuck := maxFlying, time.Time{}
	if s.direct.open() {
		most, stuck = s.direct.most()
	}
	for len(calls) < handful && s.flying < most {
		id, ok := s.alarmIndex.next(now.UnixNano())
		if !ok {
			break
		}
		s.flying++
		s.lastFired = time.Now()
		a := s.alarmIndex.alarms.At(id)
		calls = append(calls, call{
			id: id, subject: s.prefix + nameText(s.alarmIndex.alarms.Text(id)), seq: a.seq(),
			fence: s.alarmIndex.fence(a), due: a.due,
		})
	}
	s.waiting = s.flying >= most
	switch {
	case len(s.alarmIndex.queue) == 0:
		return calls, 0, false
	case s.waiting: // until an outcome comes, or what waits for one no longer counts
		return calls, time.Until(stuck) + time.Millisecond, !stuck.IsZero()
	}
	return calls, time.Duration(s.alarmIndex.at(0) - now.UnixNano()), true
}

// fire puts an alarm into its run's inbox.
func (s *term) fire(c call) {
	_, wid, run, err := subject.ParseAlarm(c.subject)
	var body []byte
	if err == nil {
		body, err = schemas.Marshal(&schemas.Ring{
			V: schemas.Version, Run: run, Due: schemas.Timestamp(c.due), Sequence: c.seq,
		})
	}
	if err != nil { // it was decoded before, so this does not happen
		s.fired(c, err)
		return
	}
	to := s.ns.In(s.partition, wid, "alarm")
	s.outbox.Send(to, natsconn.Addressed(to), body, func(a natsconn.Ack) { s.fired(c, a.Err) })
}

// done: an alarm has rung, and is deleted unless another has replaced it. The caller holds mu.
func (s *term) done(c call) {
	s.opts.Stats.Rang(s.clock.Now(s.now()).Sub(time.Unix(0, c.due)))
	if s.flying--; s.alarmIndex.is(c.id, c.seq) {
		s.alarmIndex.strike(c.id)
		s.tombstones = append(s.tombstones,
			tombstone{seq: c.seq, subject: c.subject, due: c.due, epoch: s.epoch})
		kick(s.dirty)
	}
}

// fired takes the outcome of a ring through the inbox. One whose fate is unknown is sent again,
// unless another alarm has replaced it.
func (s *term) fired(c call, err error) {
	s.mu.Lock()
	changed := s.failing != (err != nil)
	s.failing = err != nil
	if err == nil {
		s.done(c)
	} else if s.flying--; s.alarmIndex.is(c.id, c.seq) {
		s.alarmIndex.put(c.id, s.clock.Now(s.now()).Add(fireAgain).UnixNano())
	}
	s.mu.Unlock()
	kick(s.wake)
	switch {
	case changed && err != nil:
		s.log.WithField("err", err).Warn("a ring was not stored; ringing again until it is")
	case changed:
		s.log.Info("rings are stored again")
	}
}
