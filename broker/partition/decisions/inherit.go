package decisions

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
	ProbePrefix = "g"
)

// Inherit takes what the former owner has told.
func (ds *Decisions) Inherit(h *schemas.Handed) {
	if h == nil {
		return
	}
	ds.Inheriting, ds.inherited = make(map[string]schemas.HandedDecision, len(h.Wanted)),
		make(map[string]string)
	for _, d := range h.Wanted {
		if d.Replies == "" {
			d.Replies = h.Replies
		}
		ds.Inheriting[d.WorkflowID] = d
		if d.Token != "" {
			ds.inherited[d.Token] = d.WorkflowID
		}
	}
}

// MeetHanded loads the runs that wait for a decider.
func (ds *Decisions) MeetHanded() {
	for wid := range ds.Inheriting {
		ds.host.Get(wid)
	}
}

// MeetInherited makes the run wait for an answer that is on its way. It is called when the run is
// loaded, before anything happens to it.
func (ds *Decisions) MeetInherited(r *actor.Run) {
	d, ok := ds.Inheriting[r.WorkflowID]
	if !ok {
		return
	}
	delete(ds.Inheriting, r.WorkflowID)
	if d.Token == "" || !r.Open() || r.State.Run != d.Run ||
		r.State.Decision.Started != d.StartedID {
		return
	}
	ds.nextAsk++
	r.Decider.Sent(&actor.Ask{
		ID: ds.nextAsk, Token: d.Token, StartedID: d.StartedID, At: d.At, Former: d.Replies,
	}, true)
	ds.Asks[r.Decider.Ask.ID] = r
	ds.probeFormer()
}

// Decided takes an answer that a former owner passes on, and confirms it.
func (ds *Decisions) Decided(m natsconn.Msg) {
	token := m.Header.Get(tokenHeader)
	reply := &schemas.DecisionReply{}
	undecodable := natsconn.Decode(m.Header, m.Data, reply)
	ds.Loop.Post(func() {
		if ds.host.Leaving() && !ds.host.Settling() {
			return // the next owner confirms it
		}
		if err := ds.Env.Conn.Publish(m.Reply, nil, []byte("+")); err != nil {
			ds.Log.WithError(err).
				Debug("a passed on decision cannot be confirmed; it will come again")
		}
		wid, expected := ds.inherited[token]
		switch {
		case !expected:
			ds.late(m)
			return
		case wid == "":
			return // it came before
		}
		ds.inherited[token] = ""
		r := ds.host.Get(wid)
		ds.host.WhenKept(r, func() {
			if r.Decider.Ask == nil || r.Decider.Ask.Token != token {
				ds.late(m)
				return
			}
			ds.Replied(r.Decider.Ask.ID, reply, m, undecodable)
		}, func() { ds.late(m) })
	})
}

// probeFormer asks the former owners, while an answer is expected from them, whether they are
// there: the server tells at once that nobody listens on their subjects any more.
func (ds *Decisions) probeFormer() {
	if ds.probingFormer {
		return
	}
	ds.probingFormer = true
	ds.Loop.After(formerEvery, func() {
		ds.probingFormer = false
		if ds.host.Leaving() {
			return
		}
		asked := map[string]bool{}
		for _, r := range ds.Asks {
			former := r.Decider.Ask.Former
			if former == "" || asked[former] {
				continue
			}
			asked[former] = true
			n := ds.formerNumber(former)
			// No number of an ask: it would be taken for the answer to that.
			if err := ds.Env.Conn.PublishReply(former+ProbePrefix+".0",
				ds.host.Replies()+ProbePrefix+"."+strconv.Itoa(n), nil, nil); err != nil {
				ds.Log.WithError(err).Debug("a former owner cannot be asked at this moment")
			}
		}
		if len(asked) > 0 {
			ds.probeFormer()
		}
	})
}

func (ds *Decisions) formerNumber(former string) int {
	for i, f := range ds.formers {
		if f == former {
			return i
		}
	}
	ds.formers = append(ds.formers, former)
	return len(ds.formers) - 1
}

// FormerGone: nobody passes answers on any more. The deciders are asked again.
func (ds *Decisions) FormerGone(number string) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n >= len(ds.formers) || ds.host.Leaving() {
		return
	}
	for _, r := range ds.Asks {
		if r.Decider.Ask.Former == ds.formers[n] {
			ds.Log.WithField("workflow", r.WorkflowID).
				Info("the former owner is gone before a decision came: asking again")
			ds.unask(r)
			ds.host.Mark(r)
		}
	}
}
