package timers

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

const (
	// answerLimit is how long the owner may take for a ring. Then it goes through the inbox, where
	// it is safe. Both do no harm.
	answerLimit = 2 * time.Second
	// stuckAfter is how long a ring counts for the window.
	stuckAfter = 500 * time.Millisecond
	// Rings go through the inbox at once for a while when nobody listens, or when whoever does
	// gives no answer.
	absentPause = 500 * time.Millisecond
	silentPause = 10 * time.Second
)

// direct is what goes to the owner of the partition without a stored message, in the term's mu (ADR
// 0022).
type direct struct {
	prefix       string // of the subjects for answers
	next         uint64
	alarmBatches map[uint64]*alarmBatch
	not          time.Time      // rings take the way through the inbox until then
	closed       bool           // always
	inFlight     inFlightWindow // how many rings the owner has in hand
}

// alarmBatch is the rings of one message that have no outcome.
type alarmBatch struct {
	calls map[uint64]call // by the sequence of the alarm
	sent  time.Time
	heard bool // there was an answer
	late  *time.Timer
}

// open tells whether rings may go to the owner. The caller holds mu.
func (st *direct) open() bool { return !st.closed && !time.Now().Before(st.not) }

// most is how many rings may be under way. Those of runs that are stuck, whose history cannot be
// read for example, keep nobody from ringing; next is when the next of them will count as stuck,
// zero if none will. The caller holds mu.
func (st *direct) most() (most int, next time.Time) {
	now := time.Now()
	most = st.inFlight.most()
	for _, p := range st.alarmBatches {
		at := p.sent.Add(stuckAfter)
		switch {
		case at.Before(now):
			most += len(p.calls)
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	return min(most, mostDirect), next
}

// listen makes ready for the owner's answers.
func (s *term) listen() (hangUp func(), err error) {
	s.direct = direct{
		prefix: s.conn.NATS().NewInbox() + ".", alarmBatches: make(map[uint64]*alarmBatch),
		inFlight: newInFlightWindow(),
	}
	sub, err := s.conn.Subscribe(s.direct.prefix+"*", "", s.answered)
	if err != nil {
		return nil, fmt.Errorf("answers to rings: %w", err)
	}
	owner := s.ns.Fire(s.partition)
	unhook := s.conn.OnRefused(func(e *natsconn.RefusedError) {
		if !e.Subscribe && e.Subject == owner ||
			e.Subscribe && strings.HasPrefix(s.direct.prefix, strings.TrimRight(e.Subject, "*>")) {
			s.log.WithField("err", e).
				Warn("the owner may not be told of due alarms; every ring goes through the inbox")
			s.giveUp(true)
		}
	})
	return func() {
		unhook()
		s.mu.Lock()
		s.direct.closed = true
		for id, p := range s.direct.alarmBatches {
			p.late.Stop()
			delete(s.direct.alarmBatches, id)
		}
		s.mu.Unlock()
		_ = sub.Close() // fails only with the connection
	}, nil
}

// fireOwner sends rings to the owner of the partition, and returns those that must go through the
// inbox.
func (s *term) fireOwner(calls []call) (rest []call) {
	s.mu.Lock()
	open := s.direct.open()
	s.mu.Unlock()
	if !open {
		return calls // before they are encoded in vain: it may be so for good
	}
	p := &alarmBatch{calls: make(map[uint64]call, len(calls)), sent: time.Now()}
	q := &schemas.Rings{V: schemas.Version, Rings: make([]schemas.DueRing, 0, len(calls))}
	for _, c := range calls {
		_, wid, run, err := subject.ParseAlarm(c.subject)
		if err != nil || c.fence == 0 {
			rest = append(rest, c)
			continue
		}
		p.calls[c.seq] = c
		q.Rings = append(q.Rings, schemas.DueRing{
			WorkflowID: wid, Run: run, Due: schemas.Timestamp(c.due), Sequence: c.seq,
			Fence: c.fence,
		})
	}
	if len(q.Rings) == 0 {
		return rest
	}
	body, err := schemas.Marshal(q)
	if err != nil || int64(len(body)) > s.conn.MaxPayload()/2 {
		return calls
	}
	id, ok := s.enter(p)
	if !ok { // by now
		return calls
	}
	if err := s.conn.PublishReply(s.ns.Fire(s.partition),
		s.direct.prefix+strconv.FormatUint(id, 36), nil, body); err != nil {
		s.unanswered(id, absentPause)
	}
	return rest
}

// enter notes rings that go to the owner; ok is false if they must not, by now.
func (s *term) enter(p *alarmBatch) (id uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.direct.open() {
		return 0, false
	}
	s.direct.next++
	id = s.direct.next
	s.direct.alarmBatches[id] = p
	p.late = time.AfterFunc(answerLimit, func() { s.unanswered(id, silentPause) })
	return id, true
}

// answered takes an answer of the owner, or the server's that there is none.
func (s *term) answered(m natsconn.Msg) {
	id, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, s.direct.prefix), 36, 64)
	if err != nil {
		return
	}
	if m.NobodyListens() {
		s.unanswered(id, absentPause)
		return
	}
	var a schemas.RingsAnswer
	if err := schemas.Unmarshal(m.Data, &a); err != nil || len(a.Done) == 0 && !a.Refused {
		s.unanswered(id, silentPause) // an older version, which does not know the question
		return
	}
	if s.outcome(id, &a) {
		s.unanswered(id, absentPause)
	}
}

// outcome takes what the owner says of rings, and tells whether it has refused some. It does not
// block.
func (s *term) outcome(id uint64, a *schemas.RingsAnswer) (refused bool) {
	s.mu.Lock()
	p := s.direct.alarmBatches[id]
	if p == nil {
		s.mu.Unlock()
		return false
	}
	p.heard = true
	most, _ := s.direct.most()
	full := s.flying >= most
	before := len(p.calls)
	for _, seq := range a.Done {
		if c, ok := p.calls[seq]; ok {
			delete(p.calls, seq)
			s.done(c)
		}
	}
	if n := before - len(p.calls); n > 0 {
		s.direct.inFlight.answered(p.sent, time.Now(), n, full)
	}
	if len(p.calls) == 0 {
		p.late.Stop()
		delete(s.direct.alarmBatches, id)
	}
	waits := s.waiting || s.finishing
	s.mu.Unlock()
	if waits {
		kick(s.wake)
	}
	if a.Refused {
		kick(s.doubt)
	}
	return a.Refused
}

// unanswered puts what is left of a alarm batch into the inbox.
func (s *term) unanswered(id uint64, wait time.Duration) {
	s.mu.Lock()
	p := s.direct.alarmBatches[id]
	if p == nil {
		s.mu.Unlock()
		return
	}
	p.late.Stop()
	delete(s.direct.alarmBatches, id)
	if !p.heard {
		s.direct.not = time.Now().Add(wait)
	}
	s.mu.Unlock()
	s.byInbox(p)
}

// giveUp puts everything that waits for the owner into the inbox, and with closed also whatever
// comes.
func (s *term) giveUp(closed bool) {
	s.mu.Lock()
	s.direct.closed = s.direct.closed || closed
	alarmBatches := s.direct.alarmBatches
	s.direct.alarmBatches = make(map[uint64]*alarmBatch)
	s.mu.Unlock()
	for _, p := range alarmBatches {
		p.late.Stop()
		s.byInbox(p)
	}
}

// byInbox rings what another alarm has not replaced meanwhile.
func (s *term) byInbox(p *alarmBatch) {
	for _, c := range p.calls {
		s.mu.Lock()
		current := s.alarmIndex.is(c.id, c.seq)
		if !current {
			s.flying--
		}
		s.mu.Unlock()
		if current && s.lease.Valid() {
			s.fire(c)
		}
	}
	kick(s.wake)
}
