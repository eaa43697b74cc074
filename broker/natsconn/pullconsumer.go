package natsconn

import (
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// probePatience is how long the answer to a probe may take before the consumer counts as one that
// does not answer.
const probePatience = time.Second

// denialPause is how long a consumer is left alone that the server refuses to this user.
const denialPause = time.Minute

// pullConsumer is one consumer of a [Puller]. The consumers share its slots by strict precedence:
//
//   - A request that stands and is not used up proves that its consumer is empty. So a consumer
//     that nobody uses costs one request in half a minute, and a more urgent task finds a request
//     that waits for it, also at a busy worker.
//   - A consumer without a standing request is unknown. It is asked, and no lower consumer before
//     the answer is there: by a request that does not wait (a probe), or by a standing one if no
//     lower consumer has anything to ask for.
//   - The word that a consumer is empty counts for the plan that follows it. A standing request
//     that expires while all slots are taken says nothing of the time when one becomes free: kept
//     until then, it let the consumers below be asked at the same moment, for the same slot.
//   - Requests of several consumers may stand for the same slot. A task that finds no slot is
//     parked: the most urgent one goes first when a slot becomes free, and after pausePatience it
//     is given back for others.
//
// One request for all slots of the highest consumer alone, and nothing to the others until it
// expires, was left: it needs an empty answer in each round and doubles the requests of a list
// without priorities.
//
// All fields are guarded by the puller's mu.
type pullConsumer struct {
	puller   *Puller
	consumer string
	subject  string // of the pull request

	requested int       // what the standing request may still deliver
	probe     bool      // the standing request does not wait
	sent      time.Time // when it was sent
	used      bool      // it has delivered something
	serial    uint64
	reply     string    // its reply subject
	seen      time.Time // when it last showed a sign of life
	empty     bool      // the server has just said that nothing is there; until the next plan
	// it has left a probe without an answer: until it delivers, the consumers below do not wait for
	// it
	silent bool
	reach  int // how much a standing request asks for at most; it grows with use
	// what the server takes in one request, once it has refused a larger one; 0 for no bound
	most      int
	wait      time.Duration
	notBefore time.Time // when to ask again after a refusal
	denied    bool      // the server has refused it to this user before
	// since when, or since the last call of Gone, the server has ended each request; zero while it
	// has not
	lacking time.Time
	paused  []paused
}

// paused is a task that waits for a slot.
type paused struct {
	Task
	until time.Time
}

// firstReach is what a standing request asks for before its consumer is known to be used: a puller
// of one consumer knows where its slots go, the requests of several should not promise the same
// slots. An eighth lets a burst begin at once: 500 tasks for 1,000 slots came 4 ms later with a
// first request for one.
func (p *Puller) firstReach() int {
	if len(p.opts.Consumers) == 1 {
		return p.opts.Max
	}
	return max(1, p.opts.Max/8)
}

// plan sends what requests are due, from the most urgent consumer down. It stops at a task that
// waits and may take a slot now, and returns its consumer; nil if there is none. The caller holds
// mu.
func (p *Puller) plan() *pullConsumer {
	defer p.forget()
	free := p.opts.Max - p.held
	if p.closed || free < 1 {
		return nil
	}
	now := time.Now()
	for i, b := range p.consumers {
		switch {
		case len(b.paused) > 0:
			return b
		case b.requested > 0 && b.probe:
			return nil
		case b.requested > 0 || now.Before(b.notBefore):
		case b.empty || b.silent || !p.moreBelow(i, now):
			b.request(min(free, b.reach), false, now)
		case b.request(free, true, now):
			return nil
		}
	}
	return nil
}

// forget ends what was just said of empty consumers.
func (p *Puller) forget() {
	for _, b := range p.consumers {
		b.empty = false
	}
}

// moreBelow tells whether a consumer below the i-th has a task waiting or would ask for one.
func (p *Puller) moreBelow(i int, now time.Time) bool {
	for _, b := range p.consumers[i+1:] {
		if len(b.paused) > 0 || b.requested == 0 && !now.Before(b.notBefore) {
			return true
		}
	}
	return false
}

// pausing tells whether a task waits for a slot.
func (p *Puller) pausing() bool {
	for _, b := range p.consumers {
		if len(b.paused) > 0 {
			return true
		}
	}
	return false
}

func (p *Puller) consumerOf(consumer string) *pullConsumer {
	for _, b := range p.consumers {
		if b.consumer == consumer {
			return b
		}
	}
	return nil
}

// request asks for up to n tasks. It reports whether the request was sent.
func (b *pullConsumer) request(n int, probe bool, now time.Time) bool {
	if b.most > 0 {
		n = min(n, b.most)
	}
	b.serial++
	b.reply = b.puller.prefix + b.consumer + "-" + strconv.FormatUint(b.serial, 36)
	body := make([]byte, 0, 96)
	body = append(body, `{"batch":`...)
	body = strconv.AppendInt(body, int64(n), 10)
	if probe {
		body = append(body, `,"no_wait":true}`...)
	} else {
		body = append(body, `,"expires":`...)
		body = strconv.AppendInt(body, int64(pullExpires), 10)
		body = append(body, `,"idle_heartbeat":`...)
		body = strconv.AppendInt(body, int64(pullHeartbeat), 10)
		body = append(body, '}')
	}
	if err := b.puller.conn.nc.PublishRequest(b.subject, b.reply, body); err != nil {
		b.later(now) // disconnected: the reconnect asks again
		return false
	}
	b.requested, b.probe, b.used, b.sent, b.seen = n, probe, false, now, now
	return true
}

// end forgets the standing request.
func (b *pullConsumer) end() { b.requested, b.probe = 0, false }

// later sets the time of the next attempt after a refusal.
func (b *pullConsumer) later(now time.Time) {
	b.end()
	b.wait = min(max(2*b.wait, pullRetryMin), pullRetryMax)
	b.notBefore = now.Add(b.wait)
	b.puller.wake()
}

// deny leaves the consumer alone for denialPause.
func (b *pullConsumer) deny(now time.Time) {
	b.end()
	b.notBefore = now.Add(denialPause)
	if !b.denied {
		b.puller.conn.log.WithField("list", b.puller.opts.Stream).Warnf(
			"this user may not pull from consumer %s: allow it to publish to %s",
			b.consumer, b.subject)
	}
	b.denied = true
}

// status takes what the server says about the standing request.
func (b *pullConsumer) status(m *nats.Msg) {
	now := time.Now()
	b.seen = now
	switch status := m.Header.Get(statusHeader); {
	case status == "100":
		b.wait, b.lacking = 0, time.Time{}
	case status == "408", status == "404" && b.probe:
		// It has expired; or a probe has found the end, or only what others wait for.
		if !b.probe && !b.used {
			b.reach = b.puller.firstReach()
		}
		b.end()
		b.empty, b.wait, b.lacking = true, 0, time.Time{}
	case status == "409" && b.learn(m.Header.Get("Description")):
	default: // 404, 409, 503: no message, a change at the server, or no such consumer yet
		b.puller.conn.log.WithField("list", b.puller.opts.Stream).
			Debugf("pull request ended: %s %s", status, m.Header.Get("Description"))
		b.later(now)
		b.lacks(now)
	}
}

// learn takes the bound of requests from a refusal, and has the consumer asked within it at once.
// It reports whether this is one. The bound is that of the consumer, which has it from the server's
// limits (max_request_batch) if nobody has given it another.
func (b *pullConsumer) learn(refusal string) bool {
	text, ok := strings.CutPrefix(refusal, "Exceeded MaxRequestBatch of ")
	most, err := strconv.Atoi(text)
	if !ok || err != nil || most < 1 || most >= b.requested {
		return false
	}
	b.most, b.lacking = most, time.Time{}
	b.end()
	b.puller.wake()
	return true
}

// lacks notes that the server has ended a request, and says so if it has done nothing else for a
// while.
func (b *pullConsumer) lacks(now time.Time) {
	switch gone := b.puller.opts.Gone; {
	case b.lacking.IsZero():
		b.lacking = now
	case gone != nil && now.Sub(b.lacking) >= goneEvery:
		b.lacking = now
		gone()
	}
}

// delivered counts a task.
func (b *pullConsumer) delivered() {
	b.seen, b.wait, b.used, b.silent, b.lacking = time.Now(), 0, true, false, time.Time{}
	if b.requested = max(b.requested-1, 0); b.requested > 0 {
		return
	}
	b.end()
	b.reach = min(2*b.reach, b.puller.opts.Max)
}

// pause keeps a task until a slot is free.
func (b *pullConsumer) pause(t Task) {
	b.paused = append(b.paused, paused{Task: t, until: time.Now().Add(pausePatience)})
	b.puller.wake()
}

// late takes the tasks that have waited too long.
func (b *pullConsumer) late(now time.Time) (late []paused) {
	for len(b.paused) > 0 && !now.Before(b.paused[0].until) {
		late = append(late, b.paused[0])
		b.paused = b.paused[1:]
	}
	return late
}

// look gives up a request that has been lost without a word, and says when to look again.
func (b *pullConsumer) look(now time.Time) time.Duration {
	next := pullHeartbeat
	if len(b.paused) > 0 {
		next = b.paused[0].until.Sub(now)
	}
	patience := missedBeats
	if b.probe {
		patience = probePatience
		next = min(next, max(b.sent.Add(patience).Sub(now), 0)+time.Millisecond)
	}
	if b.requested > 0 && now.Sub(b.seen) > patience && b.puller.conn.Connected() {
		if n, _, err := b.puller.sub.Pending(); err == nil && n == 0 {
			b.puller.conn.log.WithField("list", b.puller.opts.Stream).
				Debug("pull request lost, asking again")
			if b.probe {
				b.later(now) // the lower consumers must not wait for it again
				b.silent = true
			}
			b.end()
		}
	}
	if b.requested == 0 {
		if wait := b.notBefore.Sub(now); wait > 0 {
			next = min(next, wait)
		}
	}
	return next
}
