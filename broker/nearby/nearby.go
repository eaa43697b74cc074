// Package nearby lets the decider workers and the activity workers of one connection find each
// other.
//
// A decider worker that shares its connection with an activity worker can take a task together with
// what the decision after it needs, and answer with the outcome and that decision at once (ADR
// 0031). The two packages do not import each other: an activity worker enters what it takes on the
// connection's [Board], a decider worker looks there.
//
// Invariants: what stands on a board takes tasks in this process, by this connection. No errand
// that comes once leave has returned is brought to who has left; one that came before may be, so a
// taker must know itself that it takes nothing any more.
package nearby

import (
	"slices"
	"sync"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// MostLists is how many task lists a decider worker names in a reply. A process that works more of
// them takes part with none: its replies would be longer than the messages that they spare.
const MostLists = 16

// List is a task list of a namespace.
type List struct{ Namespace, Name string }

// Decide makes the decision that follows an outcome, before the outcome is told, on the goroutine
// of the caller. The report has everything that will be sent but this. It returns nil if there is
// no decision. If there is none in time it calls elsewhere, once, on a goroutine of its own, which
// tells the outcome without; then, whenever it returns or ends its goroutine, told is true, and the
// caller has nothing left to do.
type Decide func(outcome *schemas.Report, elsewhere func()) (d *schemas.AheadDecision, told bool)

// Errand is a task on its way to an activity worker, with what is to be decided after it.
type Errand interface {
	// Open reads the task. It is called once, by the goroutine that does the work.
	Open() (*schemas.ActivityTask, Decide, error)
}

// Acceptor is an activity worker.
type Acceptor interface {
	// Take is called by the connection's goroutine and does not block. It tells whether the task,
	// which is of an activity type, is taken.
	Take(activityType string, m natsconn.Msg, e Errand) bool
}

// Registry says who takes the tasks of which list.
type Registry struct {
	mu        sync.Mutex
	acceptors map[List][]Acceptor
	lists     map[string][]string // by namespace, in order; none where there are too many
}

type key struct{}

// On returns the board of a connection.
func On(conn *natsconn.Conn) *Registry {
	b, _ := conn.Local(key{},
		func() any { return &Registry{acceptors: map[List][]Acceptor{}, lists: map[string][]string{}} }).(*Registry)
	return b
}

// Register says that t takes tasks of a list, until leave is called.
func (b *Registry) Register(l List, t Acceptor) (leave func()) {
	b.change(l, func(all []Acceptor) []Acceptor { return append(all, t) })
	return sync.OnceFunc(func() {
		b.change(l, func(all []Acceptor) []Acceptor {
			if i := slices.Index(all, t); i >= 0 {
				return slices.Delete(slices.Clone(all), i, i+1)
			}
			return all
		})
	})
}

func (b *Registry) change(l List, f func([]Acceptor) []Acceptor) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.acceptors[l] = f(b.acceptors[l]); len(b.acceptors[l]) == 0 {
		delete(b.acceptors, l)
	}
	var names []string
	for other := range b.acceptors {
		if other.Namespace == l.Namespace {
			names = append(names, other.Name)
		}
	}
	if len(names) > MostLists {
		names = nil
	}
	if names == nil {
		delete(b.lists, l.Namespace)
		return
	}
	slices.Sort(names)
	b.lists[l.Namespace] = names
}

// Lists are the task lists of a namespace that somebody here takes tasks of, in order; none if
// there are more than [MostLists]. The slice is shared: read it only.
func (b *Registry) Lists(namespace string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lists[namespace]
}

// Take hands an errand to somebody who takes tasks of the list and the type. It is false if nobody
// does now.
func (b *Registry) Take(l List, activityType string, m natsconn.Msg, e Errand) bool {
	b.mu.Lock()
	all := b.acceptors[l] // never changed in place, but by append after its end
	b.mu.Unlock()
	for _, t := range all {
		if t.Take(activityType, m, e) {
			return true
		}
	}
	return false
}
