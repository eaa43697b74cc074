package deciders

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
	// mostLeft bounds the workers that are known to have left, and leftFor is for how long an
	// answer with their name is one of before that.
	mostLeft = 256
	leftFor  = 10 * time.Second
	// fewWorkers is how many workers are looked through for the first task of a run.
	fewWorkers = 64
)

// Registry is what a partition knows of the decider workers that have a subject of their own for
// the next tasks of a run (sticky). It says who gets the first task of a run: of the live workers
// of the type and the type's shared queue, the one that is the least recently used. By the shared
// queue workers become known, whatever they speak. Its zero value is ready to use.
type Registry struct {
	byName map[string]*Worker
	last   uint64               // number of a worker
	turns  uint64               // first tasks that were given
	shared map[string]uint64    // by workflow type: the turn in which the shared queue got one
	left   map[string]time.Time // by name: when workers have stopped in good order
}

// Worker is what is known of one.
type Worker struct {
	Name   string
	Number uint64 // of the answers to probes, and in what is kept of runs that left the memory
	Lists  []string
	Types  []string // that it has decided for, if it can be probed for them

	unheard  []string  // of Types, those for which nobody listens on its subject
	turn     uint64    // when it last got the first task of a run
	busy     time.Time // it is offered no tasks until then
	overdue  bool      // a decision of it is, and it has made none since
	probedAt time.Time
}

// Answered notes who has answered a decision task of a type, and what it says of itself. It returns
// the worker's name for the run's next tasks, "" if it does not want them.
func (g *Registry) Answered(typ string, reply *schemas.DecisionReply) string {
	if !g.mayWant(reply.Sticky) {
		return ""
	}
	w := g.byName[reply.Sticky]
	if w == nil {
		w = &Worker{Name: strings.Clone(reply.Sticky)} // the reply goes with its own texts
	}
	w.overdue = false
	if i := slices.Index(w.unheard, typ); i >= 0 {
		w.unheard = slices.Delete(w.unheard, i, i+1)
	}
	w.setLists(reply.Lists)
	if reply.Alive && !slices.Contains(w.Types, typ) && len(w.Types) < mostWorkerTypes {
		w.Types = append(w.Types, strings.Clone(typ))
	}
	switch {
	case len(w.Lists)+len(w.Types) == 0:
		delete(g.byName, w.Name)
	case w.Number == 0:
		if g.byName == nil || len(g.byName) >= mostWorkers {
			g.byName = make(map[string]*Worker)
		}
		g.last++
		w.Number = g.last
		g.byName[w.Name] = w
	}
	return w.Name
}

// PassedOn is Answered for an answer that a former owner has passed on. It does not say that its
// worker is there: that may have left before this owner listened.
func (g *Registry) PassedOn(reply *schemas.DecisionReply) string {
	if !g.mayWant(reply.Sticky) {
		return ""
	}
	return strings.Clone(reply.Sticky)
}

// mayWant tells whether an answer with this name may ask for the next tasks of a run.
func (g *Registry) mayWant(name string) bool {
	return name != "" && !g.hasLeft(name) && schemas.ValidateID("sticky", name) == nil
}

func (w *Worker) setLists(lists []string) {
	if slices.Equal(w.Lists, lists) {
		return
	}
	w.Lists = nil
	unnamed := func(list string) bool { return schemas.ValidateName("lists", list) != nil }
	if len(lists) > nearby.MostLists || slices.ContainsFunc(lists, unnamed) {
		// what is kept is bounded
		return
	}
	for _, l := range lists {
		w.Lists = append(w.Lists, strings.Clone(l))
	}
}

// takesFirst tells whether a worker may get first tasks of a type.
func (w *Worker) takesFirst(typ string) bool {
	return !w.overdue && slices.Contains(w.Types, typ) && !slices.Contains(w.unheard, typ)
}

// First is the name of the worker that gets the first task of a run of a type; "" for the shared
// queue.
func (g *Registry) First(typ string) string {
	if len(g.byName) > fewWorkers {
		return ""
	}
	next := g.next(typ, "")
	if next == nil {
		return "" // the shared queue is not one of several
	}
	g.turns++
	if g.shared[typ] <= next.turn {
		if g.shared == nil || len(g.shared) >= mostShared {
			g.shared = make(map[string]uint64)
		}
		g.shared[typ] = g.turns
		return ""
	}
	next.turn = g.turns
	return next.Name
}

// Other is the name of the least recently used live worker of a type that is not the one named; ""
// if none is known.
func (g *Registry) Other(typ, not string) string {
	if len(g.byName) > fewWorkers {
		return ""
	}
	w := g.next(typ, not)
	if w == nil {
		return ""
	}
	g.turns++
	w.turn = g.turns
	return w.Name
}

// next is the least recently used live worker of a type, but for one; nil if there is none.
func (g *Registry) next(typ, not string) (next *Worker) {
	for _, w := range g.byName {
		if w.Name != not && w.takesFirst(typ) && (next == nil || w.turn < next.turn) {
			next = w
		}
	}
	return next
}

// SharedAnswered notes who has answered a task of the shared queue. If that is nobody who is known,
// the queue has the next turn as well, since nothing is known of how many more listen to it.
func (g *Registry) SharedAnswered(typ, name string) {
	if g.byName[name] == nil {
		delete(g.shared, typ)
	}
}

// NotHeard notes that nobody listens for a type where a worker did. It may serve other types still.
func (g *Registry) NotHeard(name, typ string) {
	if w := g.byName[name]; w != nil && slices.Contains(w.Types, typ) &&
		!slices.Contains(w.unheard, typ) {
		w.unheard = append(w.unheard, strings.Clone(typ))
	}
}

// Overdue notes that a decision of a worker is overdue.
func (g *Registry) Overdue(name string) {
	if w := g.byName[name]; w != nil {
		w.overdue = true
	}
}

// TakesTasks tells whether a worker takes activity tasks of a list, and is not busy.
func (g *Registry) TakesTasks(name, list string) bool {
	w := g.byName[name]
	return w != nil && slices.Contains(w.Lists, list) && !time.Now().Before(w.busy)
}

// Refused notes that a worker has refused an activity task: it gets none for a while. If nobody
// heard the task it gets no more until it answers again: it may drain, and be at work still, so it
// stays known to be probed.
func (g *Registry) Refused(name string, nobody bool, pause time.Duration) {
	switch w := g.byName[name]; {
	case w == nil:
	case nobody:
		w.Lists = nil
	default:
		w.busy = time.Now().Add(pause)
	}
}

// Leave forgets a worker that has stopped in good order. Its last answers come another way and may
// be heard after its last word: they must not make it known again, or it would be missed.
func (g *Registry) Leave(name string) {
	delete(g.byName, name)
	if g.left == nil || len(g.left) >= mostLeft {
		g.left = make(map[string]time.Time)
	}
	g.left[name] = time.Now()
}

// hasLeft tells whether a worker has said goodbye a moment ago.
func (g *Registry) hasLeft(name string) bool {
	at, left := g.left[name]
	return left && time.Since(at) < leftFor
}

// Number is that of a worker, which is shorter than its name; 0 if it has none.
func (g *Registry) Number(name string) uint64 {
	if w := g.byName[name]; w != nil {
		return w.Number
	}
	return 0
}

// Remembers is the name of the worker with a number, if that may still have a run in memory that it
// has decided for; else "".
func (g *Registry) Remembers(number uint64) string {
	if number == 0 || len(g.byName) > fewWorkers {
		return ""
	}
	if w := g.numbered(number); w != nil && !w.overdue {
		return w.Name
	}
	return ""
}

// Gone forgets the worker with a number, whose connection is gone, and returns what was known of
// it; nil if it is not known any more.
func (g *Registry) Gone(number uint64) *Worker {
	w := g.numbered(number)
	if w != nil {
		delete(g.byName, w.Name)
	}
	return w
}

func (g *Registry) numbered(number uint64) *Worker {
	for _, w := range g.byName {
		if w.Number == number {
			return w
		}
	}
	return nil
}
