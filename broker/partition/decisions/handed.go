package decisions

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/schemas"
)

const (
	// passRetry is how soon an answer is passed on again that the next owner has not confirmed.
	passRetry = 25 * time.Millisecond
	// lateGrace is how long after its deadline an answer is still waited for.
	lateGrace = schemas.Duration(2 * time.Second)
	// mostHanded bounds what a checkpoint tells. What is beyond is found by its alarm.
	mostHanded = 4096

	PassedPrefix = "f"
	// tokenHeader names the decision task that a passed on answer is for.
	tokenHeader = "Drover-Token"
	VerbDecided = "decided"
)

// Handed tells which decisions are wanted, and forgets those whose answers the next owner
// would not expect.
func (ds *Decisions) Handed() *schemas.Handed {
	h := &schemas.Handed{Replies: ds.host.Replies()}
	for _, d := range ds.Inheriting {
		h.Wanted = append(h.Wanted, d)
	}
	for _, r := range ds.Asks {
		d := schemas.HandedDecision{
			WorkflowID: r.WorkflowID, Run: r.State.Run, Token: r.Decider.Ask.Token,
			StartedID: r.Decider.Ask.StartedID, At: r.Decider.Ask.At, Replies: r.Decider.Ask.Former,
		}
		stands := r.Decider.Asking.Confirmed() && r.State.Decision.Started == r.Decider.Ask.StartedID &&
			r.Committed >= r.Decider.Ask.StartedID
		if !stands || len(h.Wanted) >= mostHanded {
			ds.unask(r)
			continue
		}
		h.Wanted = append(h.Wanted, d)
		if r.Decider.Ask.Former != "" {
			ds.unask(r) // its answer comes to somebody else
		}
	}
	for r := range ds.host.Runs() {
		if len(h.Wanted) >= mostHanded {
			break
		}
		if r.Load.Waits() || r.Decider.Asking.Open() || !r.Open() {
			continue
		}
		if _, wanted := r.State.WantsDecider(ds.Env.Config()); wanted && !slices.ContainsFunc(
			h.Wanted, func(d schemas.HandedDecision) bool { return d.WorkflowID == r.WorkflowID }) {
			h.Wanted = append(h.Wanted,
				schemas.HandedDecision{WorkflowID: r.WorkflowID, Run: r.State.Run})
		}
	}
	for wid := range ds.Deciders.Backlog.Oldest() {
		if len(h.Wanted) >= mostHanded {
			break
		}
		if ds.host.InMemory(wid) == nil {
			h.Wanted = append(h.Wanted, schemas.HandedDecision{WorkflowID: wid})
		}
	}
	if len(h.Wanted) == 0 {
		h.Replies = ""
	}
	return h // also if it says nothing: the next owner learns that nobody waits for this one
}

// Overdue tells whether the deadline of a decision has passed by more than grace.
func (ds *Decisions) Overdue(r *actor.Run, grace schemas.Duration) bool {
	by := ds.answerBy(r, r.Decider.Ask)
	return by != 0 && by.Add(grace) < ds.host.Now()
}

// passOn hands the answer of a decider to the partition's new owner, again and again until that has
// confirmed it.
func (ds *Decisions) passOn(a *actor.Ask, m natsconn.Msg) {
	if a.Passing {
		return // a decider that answers twice
	}
	a.Passing = true
	h := maps.Clone(m.Header)
	if h == nil {
		h = natsconn.Header{}
	}
	h.Set(actor.VerbHeader, VerbDecided)
	h.Set(tokenHeader, a.Token)
	var send func()
	send = func() {
		if ds.Asks[a.ID] == nil {
			return
		}
		err := ds.Env.Conn.PublishReply(ds.Env.NS.Owner(ds.Partition),
			ds.host.Replies()+PassedPrefix+"."+strconv.FormatUint(a.ID, 36), h, m.Data)
		if err != nil {
			ds.Log.WithError(err).Debug("a decision cannot be passed on now")
		}
		ds.Loop.After(passRetry, send)
	}
	send()
}

// Passed: the new owner has the answer.
func (ds *Decisions) Passed(id uint64) {
	if r := ds.Asks[id]; r != nil && ds.host.Sealed() {
		ds.unask(r)
	}
}

// GiveUp forgets the decisions whose time is over.
func (ds *Decisions) GiveUp() {
	for _, r := range ds.Asks {
		if ds.Overdue(r, lateGrace) {
			ds.unask(r)
		}
	}
}
