package partition

import (
	"strconv"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/schemas"
)

// A new owner that finds in the checkpoint which decisions are being made does not ask for them
// again: it waits for the answers, which the former owner passes on. Safety does not rest on it: an
// answer is judged by the history as any other, and the decision's own deadline holds.

const (
	// formerEvery is how often a new owner looks whether the former one is still there to pass
	// answers on.
	formerEvery = 250 * time.Millisecond
	probePrefix = "g"
)

// inherit takes what the former owner has told.
func (p *Partition) inherit(h *schemas.Handed) {
	if h == nil {
		return
	}
	p.inheriting, p.inherited = make(map[string]schemas.HandedDecision, len(h.Wanted)),
		make(map[string]string)
	for _, d := range h.Wanted {
		if d.Replies == "" {
			d.Replies = h.Replies
		}
		p.inheriting[d.WorkflowID] = d
		if d.Token != "" {
			p.inherited[d.Token] = d.WorkflowID
		}
	}
}

// meetHanded loads the runs that wait for a decider.
func (p *Partition) meetHanded() {
	for wid := range p.inheriting {
		p.get(wid)
	}
}

// inheritAsk makes the run wait for an answer that is on its way. It is called when the run is
// loaded, before anything happens to it.
func (p *Partition) inheritAsk(r *actor.Run) {
	d, ok := p.inheriting[r.WorkflowID]
	if !ok {
		return
	}
	delete(p.inheriting, r.WorkflowID)
	if d.Token == "" || !r.Open() || r.State.Run != d.Run ||
		r.State.Decision.Started != d.StartedID {
		return
	}
	p.nextAsk++
	r.Decider.Ask = &actor.Ask{
		ID: p.nextAsk, Token: d.Token, StartedID: d.StartedID, At: d.At, Confirmed: true,
		Former: d.Replies,
	}
	p.asks[r.Decider.Ask.ID] = r
	p.probeFormer()
}

// decided takes an answer that a former owner passes on, and confirms it.
func (p *Partition) decided(m natsconn.Msg) {
	token := m.Header.Get(tokenHeader)
	reply := &schemas.DecisionReply{}
	undecodable := natsconn.Decode(m.Header, m.Data, reply)
	p.loop.Post(func() {
		if p.leaving != nil && p.leaving.stage != settling {
			return // the next owner confirms it
		}
		if err := p.b.Conn.Publish(m.Reply, nil, []byte("+")); err != nil {
			p.log.WithError(err).
				Debug("a passed on decision cannot be confirmed; it will come again")
		}
		wid, expected := p.inherited[token]
		switch {
		case !expected:
			p.late(m)
			return
		case wid == "":
			return // it came before
		}
		p.inherited[token] = ""
		r := p.get(wid)
		p.whenKept(r, func() {
			if r.Decider.Ask == nil || r.Decider.Ask.Token != token {
				p.late(m)
				return
			}
			p.replied(r.Decider.Ask.ID, reply, m, undecodable)
		}, func() { p.late(m) })
	})
}

// probeFormer asks the former owners, while an answer is expected from them, whether they are
// there: the server tells at once that nobody listens on their subjects any more.
func (p *Partition) probeFormer() {
	if p.probingFormer {
		return
	}
	p.probingFormer = true
	p.loop.After(formerEvery, func() {
		p.probingFormer = false
		if p.leaving != nil {
			return
		}
		asked := map[string]bool{}
		for _, r := range p.asks {
			former := r.Decider.Ask.Former
			if former == "" || asked[former] {
				continue
			}
			asked[former] = true
			n := p.formerNumber(former)
			// No number of an ask: it would be taken for the answer to that.
			if err := p.b.Conn.PublishReply(former+probePrefix+".0",
				p.replies+probePrefix+"."+strconv.Itoa(n), nil, nil); err != nil {
				p.log.WithError(err).Debug("a former owner cannot be asked at this moment")
			}
		}
		if len(asked) > 0 {
			p.probeFormer()
		}
	})
}

func (p *Partition) formerNumber(former string) int {
	for i, f := range p.formers {
		if f == former {
			return i
		}
	}
	p.formers = append(p.formers, former)
	return len(p.formers) - 1
}

// formerGone: nobody passes answers on any more. The deciders are asked again.
func (p *Partition) formerGone(number string) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n >= len(p.formers) || p.leaving != nil {
		return
	}
	for _, r := range p.asks {
		if r.Decider.Ask.Former == p.formers[n] {
			p.log.WithField("workflow", r.WorkflowID).
				Info("the former owner is gone before a decision came: asking again")
			p.unask(r)
			p.mark(r)
		}
	}
}
