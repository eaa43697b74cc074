package broker

import (
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/nearby"
	"github.com/droverhq/drover/schemas"
)

const (
	// mostWorkers bounds the decider workers that are known, mostWorkerTypes the types of each,
	// and mostShared the types of which it is known when the shared queue had its turn.
	mostWorkers     = 4096
	mostWorkerTypes = 64
	mostShared      = 4096
	// mostLeft bounds the workers that are known to have left, and leftFor is for how long an answer
	// with their name is one of before that.
	mostLeft = 256
	leftFor  = 10 * time.Second
	// mostPreferred is how many questions of a partition may be open when a run that nobody has in
	// memory, by what is known, is given to one worker: if there are more, that one may be busy and
	// others idle. fewWorkers is how many workers are looked through for it.
	mostPreferred, fewWorkers = 64, 64
)

// workerRegistry is what a partition knows of the decider workers that have a subject of their own
// for the next tasks of a run (sticky). It says who gets the first task of a run: of the live
// workers of the type and the type's shared queue, the one that is the least recently used. By the
// shared queue workers become known, whatever they speak.
type workerRegistry struct {
	byName map[string]*worker
	last   uint64               // number of a worker
	turns  uint64               // first tasks that were given
	shared map[string]uint64    // by workflow type: the turn in which the shared queue got one
	left   map[string]time.Time // by name: when workers have stopped in good order
}

// worker is what is known of one.
type worker struct {
	name     string
	number   uint64    // of the answers to calls, and in the records of runs in memory that are passivated
	lists    []string  // that it takes tasks of
	types    []string  // that it has decided for, if it can be called for them (silence.go)
	unheard  []string  // of types, those for which nobody listens on its subject
	turn     uint64    // when it last got the first task of a run
	busy     time.Time // it is offered no tasks until then
	overdue  bool      // a decision of it is, and it has made none since
	calledAt time.Time
}

// answered notes who has answered a decision task of a type, and what it says of itself. It returns
// the worker's name for the run's next tasks, "" if it does not want them.
func (g *workerRegistry) answered(typ string, reply *schemas.DecisionReply) string {
	if reply.Sticky == "" || g.hasLeft(reply.Sticky) || schemas.ValidateID("sticky", reply.Sticky) != nil {
		return ""
	}
	w := g.byName[reply.Sticky]
	if w == nil {
		w = &worker{name: strings.Clone(reply.Sticky)} // the reply goes with its own texts
	}
	w.overdue = false
	if i := slices.Index(w.unheard, typ); i >= 0 {
		w.unheard = slices.Delete(w.unheard, i, i+1)
	}
	w.setLists(reply.Lists)
	if reply.Alive && !slices.Contains(w.types, typ) && len(w.types) < mostWorkerTypes {
		w.types = append(w.types, strings.Clone(typ))
	}
	switch {
	case len(w.lists)+len(w.types) == 0:
		delete(g.byName, w.name)
	case w.number == 0:
		if g.byName == nil || len(g.byName) >= mostWorkers {
			g.byName = make(map[string]*worker)
		}
		g.last++
		w.number = g.last
		g.byName[w.name] = w
	}
	return w.name
}

func (w *worker) setLists(lists []string) {
	if slices.Equal(w.lists, lists) {
		return
	}
	w.lists = nil
	unnamed := func(list string) bool { return schemas.ValidateName("lists", list) != nil }
	if len(lists) > nearby.MostLists || slices.ContainsFunc(lists, unnamed) { // what is kept is bounded
		return
	}
	for _, l := range lists {
		w.lists = append(w.lists, strings.Clone(l))
	}
}

// takesFirst tells whether a worker may get first tasks of a type.
func (w *worker) takesFirst(typ string) bool {
	return !w.overdue && slices.Contains(w.types, typ) && !slices.Contains(w.unheard, typ)
}

// first is the worker that gets the first task of a run of a type; nil for the shared queue.
func (g *workerRegistry) first(typ string) *worker {
	if len(g.byName) > fewWorkers {
		return nil
	}
	var next *worker
	for _, w := range g.byName {
		if w.takesFirst(typ) && (next == nil || w.turn < next.turn) {
			next = w
		}
	}
	if next == nil {
		return nil // the shared queue is not one of several
	}
	g.turns++
	if g.shared[typ] <= next.turn {
		if g.shared == nil || len(g.shared) >= mostShared {
			g.shared = make(map[string]uint64)
		}
		g.shared[typ] = g.turns
		return nil
	}
	next.turn = g.turns
	return next
}

// stranger notes that somebody who is not known has answered a task of the shared queue: the queue
// has the next turn as well, since nothing is known of how many more listen to it.
func (g *workerRegistry) stranger(typ string) { delete(g.shared, typ) }

// notHeard notes that nobody listens for a type where a worker did. It may serve other types still.
func (g *workerRegistry) notHeard(name, typ string) {
	if w := g.byName[name]; w != nil && slices.Contains(w.types, typ) && !slices.Contains(w.unheard, typ) {
		w.unheard = append(w.unheard, strings.Clone(typ))
	}
}

// leave forgets a worker that has stopped in good order. Its last answers come another way and may be
// heard after its last word: they must not make it known again, or it would be missed.
func (g *workerRegistry) leave(name string) {
	delete(g.byName, name)
	if g.left == nil || len(g.left) >= mostLeft {
		g.left = make(map[string]time.Time)
	}
	g.left[name] = time.Now()
}

// hasLeft tells whether a worker has said goodbye a moment ago.
func (g *workerRegistry) hasLeft(name string) bool {
	at, left := g.left[name]
	return left && time.Since(at) < leftFor
}

// number is that of a worker, which is shorter than its name; 0 if it has none.
func (g *workerRegistry) number(name string) uint64 {
	if w := g.byName[name]; w != nil {
		return w.number
	}
	return 0
}

// numbered finds a worker by its number; nil if it is not known any more.
func (g *workerRegistry) numbered(number uint64) *worker {
	for _, w := range g.byName {
		if w.number == number {
			return w
		}
	}
	return nil
}

// stick notes which worker wants the run's next tasks. An answer that a former owner has passed on
// does not say that its worker is there: it may have left before this owner listened.
func (p *partition) stick(r *run, reply *schemas.DecisionReply, firstHand bool) {
	switch {
	case firstHand:
		r.sticky = p.workers.answered(r.state.Start.WorkflowType, reply)
	case p.workers.hasLeft(reply.Sticky) || schemas.ValidateID("sticky", reply.Sticky) != nil:
		r.sticky = ""
	default:
		r.sticky = strings.Clone(reply.Sticky)
	}
}

// remember makes a run sticky that has left the memory: its worker has not forgotten it, perhaps,
// and is asked in the short encoding.
func (p *partition) remember(r *run, number uint64) {
	if number == 0 || len(p.workers.byName) > fewWorkers {
		return
	}
	if w := p.workers.numbered(number); w != nil && !w.overdue {
		r.sticky, r.slept = w.name, true
	}
}

// route settles whom a decision task is for before it is sent: r.sticky, or the shared queue if that
// is empty. A run that has left the memory goes back to its worker, and the first task of a run to the
// worker whose turn it is, while few questions are open and its record waits for the answer (hold.go)
// after another that came in time. With slow deciders it would stand in line with one worker while
// others are idle.
func (p *partition) route(r *run, waits bool) {
	d, typ := &r.state.Decision, r.state.Start.WorkflowType
	prefers := waits && !p.lateTypes[r.listOf()].Failing(typ) && len(p.asks) < mostPreferred
	if r.slept && !prefers {
		r.sticky = ""
	}
	r.slept = false
	if !prefers || r.sticky != "" || d.Previous != 0 || d.Failures != 0 {
		return
	}
	if w := p.workers.first(typ); w != nil {
		r.sticky = w.name
	}
}
