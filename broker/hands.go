package broker

import (
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/nearby"
	"github.com/droverhq/drover/schemas"
)

const (
	// mostHands bounds the sticky workers that are known, and mostHandTypes what is known of each.
	mostHands     = 4096
	mostHandTypes = 64
	// mostLeft bounds the workers that are known to have left, and leftFor is for how long an answer with their name is one of before that.
	mostLeft = 256
	leftFor  = 10 * time.Second
	// mostRecalled is how many questions of a partition may be open when a run that has slept goes back to its worker: if there are more the worker may be
	// busy, and others idle. fewHands is how many workers are looked through for it.
	mostRecalled, fewHands = 64, 64
)

// hand is what is known of a sticky worker.
type hand struct {
	name  string
	lists []string  // that it takes tasks of
	away  time.Time // it gets none until then
	hangs bool      // a decision of it is overdue, and it has made none since

	// types are those that it has decided for, if it can be called for them (silence.go).
	types  []string
	number uint64    // of the answers to calls
	turn   uint64    // when it was last given a run that nobody had decided for
	deaf   []string  // of types, those whose question nobody heard at its subject, and that it has not decided for since
	called time.Time // last
}

// stick notes which worker wants the run's next tasks, and what else it takes. An answer that a former owner has passed on does not say that its worker
// is there: it may have left before this owner listened.
func (p *partition) stick(r *run, reply *schemas.DecisionReply, firstHand bool) {
	o, typ := &p.offers, r.state.Start.WorkflowType
	if r.sticky = reply.Sticky; o.hasLeft(r.sticky) || schemas.ValidateID("sticky", r.sticky) != nil {
		r.sticky = ""
	}
	if r.sticky == "" {
		return
	}
	if !firstHand {
		r.sticky = strings.Clone(r.sticky) // the reply goes with its own texts
		return
	}
	h := o.hands[r.sticky]
	if h == nil {
		h = &hand{name: strings.Clone(r.sticky)}
	}
	r.sticky, h.hangs = h.name, false
	if i := slices.Index(h.deaf, typ); i >= 0 {
		h.deaf = slices.Delete(h.deaf, i, i+1)
	}
	if !slices.Equal(h.lists, reply.Lists) {
		h.lists = nil
		unnamed := func(list string) bool { return schemas.ValidateName("lists", list) != nil }
		if len(reply.Lists) <= nearby.MostLists && !slices.ContainsFunc(reply.Lists, unnamed) { // what is kept is bounded
			for _, l := range reply.Lists {
				h.lists = append(h.lists, strings.Clone(l))
			}
		}
	}
	if reply.Alive && !slices.Contains(h.types, typ) && len(h.types) < mostHandTypes {
		h.types = append(h.types, typ)
	}
	switch known := h.number != 0; {
	case len(h.lists)+len(h.types) == 0:
		delete(o.hands, r.sticky)
	case !known:
		if o.hands == nil || len(o.hands) >= mostHands {
			o.hands = make(map[string]*hand)
		}
		o.lastHand++
		h.number = o.lastHand
		o.hands[h.name] = h
	}
}

// goodbye forgets a worker that has stopped in good order. Its last answers come another way and may be heard behind its last word: by them it must not
// be known again, or it would be missed.
func (o *offers) goodbye(name string) {
	delete(o.hands, name)
	if o.left == nil || len(o.left) >= mostLeft {
		o.left = make(map[string]time.Time)
	}
	o.left[name] = time.Now()
}

// hasLeft tells whether a worker has said goodbye a moment ago.
func (o *offers) hasLeft(name string) bool {
	at, left := o.left[name]
	return left && time.Since(at) < leftFor
}

// numberOf is a sticky worker's number, which is shorter than its name; 0 if it has none.
func (p *partition) numberOf(sticky string) uint64 {
	if h := p.offers.hands[sticky]; h != nil {
		return h.number
	}
	return 0
}

// remember makes a run sticky that has slept: its worker has not forgotten it, perhaps, and is asked in the short encoding.
func (p *partition) remember(r *run, number uint64) {
	if number == 0 || len(p.offers.hands) > fewHands {
		return
	}
	if h := p.handOf(number); h != nil && !h.hangs {
		r.sticky, r.slept = h.name, true
	}
}

// recall settles, when the decider is asked, whether a run that has slept goes back to its worker: while few questions are open, and its record waits for the
// answer (hold.go) behind another that came in time. With slow deciders it would stand in line with one worker while others are idle.
func (p *partition) recall(r *run, waits bool) {
	if r.slept && (!waits || p.crowded(r)) {
		r.sticky = ""
	}
	r.slept = false
}

// crowded tells whether a run is better asked of anybody than of one worker: deciders of its type were late, or many questions are open.
func (p *partition) crowded(r *run) bool {
	return p.paces[r.listOf()][r.state.Start.WorkflowType] != nil || len(p.asks) >= mostRecalled
}

// handOf finds a worker by the number that its calls have.
func (p *partition) handOf(number uint64) *hand {
	for _, h := range p.offers.hands {
		if h.number == number {
			return h
		}
	}
	return nil
}
