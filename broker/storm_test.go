package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// storm is a fleet whose owners come and go, and lose some of what they publish.
type storm struct {
	*fleet
	r    *rand.Rand
	over atomic.Bool
	born int

	mu    sync.Mutex
	fates *rand.Rand
	holds map[string]bool // tokens of offers in hand
}

// fate is what becomes of one publish while the storm lasts: most go through.
func (s *storm) fate(subj string, _ []byte) cutwire.Verdict {
	if s.over.Load() {
		return cutwire.Pass
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := s.fates.IntN(400); {
	case n < 4:
		return cutwire.Swallow
	case n < 8:
		return cutwire.Unanswered
	case n < 12:
		return cutwire.Late
	case n < 14 && !strings.HasPrefix(subj, "$O."): // as onePublish says
		return cutwire.Twice
	case n == 14:
		return cutwire.Break
	case n == 15:
		return cutwire.CutBefore
	case n == 16:
		return cutwire.CutAfter
	}
	return cutwire.Pass
}

func (s *storm) begin() {
	s.born++
	n := s.node(fmt.Sprint("n", s.born), s.fate, func(o *broker.Options) {
		o.CachedRuns, o.SnapshotEvents = pick(s.r, 0, 2, 8), pick(s.r, 0, 6)
	})
	n.wire.Delay(pick(s.r, 100*time.Millisecond, 3*time.Second, 15*time.Second))
}

// living are the nodes that run. Those that a verdict has killed, or that could not begin, are cleared away.
func (s *storm) living() (all []*node) {
	for _, n := range s.nodes {
		select {
		case <-n.wire.Killed():
			n.stop()
		case <-n.failed:
			n.stop()
		default:
		}
		if !n.ended {
			all = append(all, n)
		}
	}
	return all
}

// blow lets one thing happen to the owners.
func (s *storm) blow() {
	all := s.living()
	if len(all) == 0 || len(all) < 3 && s.r.IntN(2) == 0 {
		s.begin()
		return
	}
	switch n := pick(s.r, all...); s.r.IntN(6) {
	case 0, 1:
		n.kill()
	case 2, 3:
		n.stop()
	case 4: // as it is; a lag was tried, and left: the client library reconnects under a lock, for which virtual time does not go on
	case 5:
		_ = s.post.Publish("$KV."+ns.BucketClaims()+"."+claims.Partition(s.r.IntN(s.partitions)), map[string][]string{"KV-Operation": {"DEL"}}, nil) // the claims heal
	}
}

// decides answers decision tasks of a type, but for some while the storm lasts.
func (s *storm) decides(typ string) {
	decide := unaskedTypes[typ]
	s.decider(typ, func(d *decisionTask) string {
		s.mu.Lock()
		n := s.fates.IntN(25)
		s.mu.Unlock()
		if n == 0 && !s.over.Load() {
			return ""
		}
		return decide(d)
	})
}

// works does the tasks of list main until stop is closed, as an honest worker that asks before it does what may be in hand. While the storm lasts it loses
// some, fails at some, and forgets to acknowledge others.
func (s *storm) works(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		k := s.tryPull(2 * time.Second) // it never has the list opened: that is for the owners
		if k == nil {
			continue
		}
		n := s.luck()
		if k.delivered > 1 || k.NotIdempotent {
			p := s.permitted(k)
			if p == nil || p.Leave {
				continue
			}
			if !p.Go {
				_ = k.msg.Ack()
				continue
			}
			k.Token = p.Token
		}
		switch n {
		case 0:
			continue
		case 1:
			k.report("failed", `,"reason":"bad luck"`)
		case 2:
			time.Sleep(time.Second)
			k.report("success", `,"result":"fine"`)
			continue
		default:
			s.succeeds(k)
		}
		_ = k.msg.Ack() // a hint
	}
}

// luck of a worker is from 0 to 11, and the best once the storm is over.
func (s *storm) luck() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.fates.IntN(12)
	if s.over.Load() {
		return 11
	}
	return n
}

// succeeds hands an outcome over, or puts it into the inbox. By what is handed over owners learn that tasks are quick, and may be offered.
func (s *storm) succeeds(k *task) {
	outcome := `{"token":"` + k.Token + `","kind":"success","result":"fine","elapsed":"1ms"}`
	if !s.hands(direct(k.Beat), outcome) {
		s.publish(k.Report, outcome)
	}
}

// hands tells whether the owner of a workflow has taken a report.
func (s *storm) hands(to, report string) bool {
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Second)
	defer cancel()
	m, err := s.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: to, Data: []byte(report)})
	return err == nil && strings.Contains(string(m.Data), `"sequence"`)
}

// hears does what is offered, as the worker w-1, which answers for what it has in hand. While the storm lasts it refuses some, and loses others.
func (s *storm) hears() {
	s.holds = make(map[string]bool)
	subscribe := func(subj, queue string, do func(*nats.Msg)) {
		if _, err := s.nc.QueueSubscribe(subj, queue, func(m *nats.Msg) { go do(m) }); err != nil {
			s.t.Fatal(err)
		}
	}
	subscribe(ns.Control("w-1"), "", func(m *nats.Msg) {
		var c schemas.Control
		err := schemas.Unmarshal(m.Data, &c)
		s.mu.Lock()
		holds := s.holds[c.Token]
		s.mu.Unlock()
		if err == nil && c.Kind == schemas.ControlHolds && holds {
			_ = m.Respond([]byte(`{"node":"w-1","holds":true}`))
		}
	})
	subscribe(ns.Offer("main"), "workers", func(m *nats.Msg) {
		k := &task{f: s.fleet}
		if err := json.Unmarshal(m.Data, k); err != nil {
			s.t.Error(err)
			return
		}
		n := s.luck()
		switch n {
		case 0:
			_ = m.Respond([]byte("busy"))
			return
		case 1:
			return
		}
		s.mu.Lock()
		s.holds[k.Token] = true
		s.mu.Unlock()
		defer func() { s.mu.Lock(); delete(s.holds, k.Token); s.mu.Unlock() }()
		if k.NotIdempotent && !s.begunStraight(k) || n == 2 {
			return
		}
		if n == 3 {
			time.Sleep(3 * time.Second)
		}
		s.succeeds(k)
	})
	s.flush()
}

// begunStraight asks the owner itself whether an offer may begin, and by way of the inbox if it does not say yes.
func (s *storm) begunStraight(k *task) bool {
	if s.hands(direct(k.Beat), `{"token":"`+k.Token+`","kind":"begin","identity":"w-1","nonce":"w0.0"}`) {
		return true
	}
	p := s.permitted(k)
	return p != nil && p.Go
}

// permitted asks whether a task may be done; nil if nobody answers for a while.
func (s *storm) permitted(k *task) *schemas.Permission {
	inbox := s.nc.NewInbox()
	got := make(chan *nats.Msg, 16)
	sub, err := s.nc.ChanSubscribe(inbox, got)
	if err != nil {
		s.t.Error(err)
		return nil
	}
	defer func() { _ = sub.Unsubscribe() }()
	nonce := fmt.Sprintf("w%d.%d", k.sequence, k.delivered)
	for range 4 {
		k.report("begin", fmt.Sprintf(`,"identity":"w-1","taskSequence":%d,"redelivered":%t,"nonce":"%s","replyTo":"%s"`, k.sequence, k.delivered > 1, nonce, inbox))
		select {
		case m := <-got:
			var p schemas.Permission
			if err := json.Unmarshal(m.Data, &p); err != nil {
				s.t.Error(err)
				return nil
			}
			return &p
		case <-time.After(5 * time.Second):
		}
	}
	return nil
}
