package broker

import "slices"

// The first question of a run may go to anybody who decides for its type: whoever listens, in any language, so it is JSON. Drover's own workers
// read and write the short encoding in a third of the time, on a subject of their own. So while a type's first questions are answered by workers
// that are known, most of them go to these in turn (ADR 0059).
//
//   - One in openlyEvery still goes to anybody. So a worker that has just come is known soon, whatever it speaks.
//   - As soon as somebody who is not known answers one, all go to anybody for a while: then who listens has the same share of them, as NATS deals
//     them out. That ends when no stranger has answered for strangerFor questions in a row.
//   - A run is introduced once. If nobody hears it there, or the worker hangs, it is anybody's, and the worker gets no other until it has decided again.
//   - It is done where [partition.recall] would be: while deciders of the type are quick and few questions are open.

const (
	// openlyEvery is of how many first questions of a type one goes to anybody.
	openlyEvery = 8
	// strangerFor is for how many first questions nobody is preferred, behind an answer of somebody who is not known.
	strangerFor = 256
)

// manners are how first questions of a type are asked.
type manners struct {
	openly int // as many go to anybody
	row    int // went to workers that are known, since one did not
}

// introduce makes a run sticky that nobody has decided for: it goes to the one of the known workers of its type whose last turn is the longest ago.
func (p *partition) introduce(r *run) {
	o, typ := &p.offers, r.state.Start.WorkflowType
	if r.sticky != "" || r.introduced || r.state.Decision.Previous != 0 || r.state.Decision.Failures != 0 ||
		len(o.hands) > fewHands || p.crowded(r) {
		return
	}
	m := o.manners[typ]
	if m == nil || m.openly > 0 {
		if m != nil {
			m.openly--
		}
		return
	}
	var next *hand
	for _, h := range o.hands {
		if !h.hangs && slices.Contains(h.types, typ) && !slices.Contains(h.deaf, typ) && (next == nil || h.turn < next.turn) {
			next = h
		}
	}
	if next == nil {
		return
	}
	if m.row++; m.row == openlyEvery-1 {
		m.row, m.openly = 0, 1
	}
	o.turns++
	next.turn = o.turns
	r.sticky, r.introduced = next.name, true
}

// unheard notes that nobody listens where the run's worker did: it may serve other types still.
func (p *partition) unheard(r *run) {
	h, typ := p.offers.hands[r.sticky], r.state.Start.WorkflowType
	if h != nil && slices.Contains(h.types, typ) && !slices.Contains(h.deaf, typ) {
		h.deaf = append(h.deaf, typ)
	}
}

// mannersFrom notes who has answered a question that went to anybody.
func (p *partition) mannersFrom(typ string, known bool) {
	o := &p.offers
	m := o.manners[typ]
	if m == nil {
		if o.manners == nil || len(o.manners) >= mostPaces {
			o.manners = make(map[string]*manners)
		}
		m = &manners{}
		o.manners[typ] = m
	}
	if !known {
		m.openly = strangerFor
	}
}
