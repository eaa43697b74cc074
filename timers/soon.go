package timers

import (
	"strings"
	"time"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/dense"
	"github.com/droverhq/drover/schemas"
)

// A burst of alarms after a rest finds everything asleep: the owner has to read the runs, the server to load the blocks in which their
// records are, and what is due meanwhile waits in line, for longer than all that took. So the owner is told of the first ones shortly
// before. It is a hint: nothing is lost if nobody hears it, and nothing rings early.
const (
	// soonLead is how long before the first alarm is due the owner is told: longer than the server takes to load a block for each
	// partition that this machine owns, one after the other.
	soonLead = 300 * time.Millisecond
	// soonRest is for how long nothing must have been rung. Who rings all the time keeps the owner awake.
	soonRest = time.Second
	// A burst is at least so many alarms that are due within soonLead of the first one, and at most so many are told of: enough for the
	// owner to see that it should read on by itself.
	fewSoon, mostSoon = 32, 256
)

// foretell tells the owner of a burst that is near, and returns how long to wait for what is next.
func (s *spell) foretell(wait time.Duration) time.Duration {
	if wait > soonLead {
		return wait - soonLead
	}
	q := s.soon()
	if q == nil || s.opts.Ring != nil && s.opts.Ring(s.partition, q, nil) {
		return wait
	}
	if body, err := schemas.Marshal(q); err == nil && int64(len(body)) <= s.conn.MaxPayload()/2 {
		// It fails only with the connection, and then there is more to do than to hint.
		_ = s.conn.Publish(s.ns.Ring(s.partition), nil, body)
	}
	return wait
}

// soon is the hint for the owner, nil if there is none to be given now.
func (s *spell) soon() *schemas.Rings {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.book.queue) < fewSoon || s.flying > 0 || time.Since(s.rung) < soonRest || !s.straight.open() {
		return nil
	}
	first := s.book.at(0)
	if first == s.foretold {
		return nil
	}
	s.foretold = first
	var ids []dense.ID
	for len(ids) < mostSoon {
		id, ok := s.book.next(first + int64(soonLead))
		if !ok {
			break
		}
		ids = append(ids, id)
	}
	q := &schemas.Rings{V: schemas.Version}
	for _, id := range ids {
		s.book.put(id, s.book.alarms.At(id).at())
		token, _, _ := strings.Cut(string(s.book.alarms.Text(id)), ".")
		if wid, err := subject.ParseToken(token); err == nil {
			q.Soon = append(q.Soon, wid)
		}
	}
	if len(q.Soon) < fewSoon {
		return nil
	}
	return q
}
