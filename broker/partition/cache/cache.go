package cache

import (
	"iter"
	"maps"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/deadlines"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
)

// Host is the partition as this package needs it. Its methods are called on the loop,
// SingleReplica from elsewhere too.
type Host interface {
	// Fail ends the term: what is in memory may be ahead of the history.
	Fail(format string, args ...any)
	// SingleReplica tells whether the history has one copy.
	SingleReplica() bool
	// Ready takes what a read has found of a run; nil: the workflow id has none.
	Ready(r *actor.Run, l *runs.Run)

	// SetAside makes what waits for a run whose history is damaged dead letters; GoOn repeats what
	// it has open once it can be read again; TurnAwayAll refuses the requests that wait for it.
	SetAside(r *actor.Run)
	GoOn(r *actor.Run)
	TurnAwayAll(r *actor.Run)

	// EndRecall says that a run that was called back from the backlog needs no decision any more.
	EndRecall(r *actor.Run)
	// WorkerNumber is the number of a decider worker in the registry.
	WorkerNumber(name string) uint64
}

// Cache has the runs of a partition that are in memory.
type Cache struct {
	env.Owner
	host      Host
	deadlines *deadlines.Deadlines[*actor.Run]

	runs   map[string]*actor.Run
	closed []*actor.Run // the latest closed runs, the oldest first
}

// New returns that of a new owner, in which no run is.
func New(host Host, o env.Owner, lines *deadlines.Deadlines[*actor.Run]) *Cache {
	return &Cache{Owner: o, host: host, deadlines: lines, runs: make(map[string]*actor.Run)}
}

// InMemory returns the actor of a workflow id that is in memory; nil if it is not.
func (c *Cache) InMemory(wid string) *actor.Run { return c.runs[wid] }

// All are the runs in memory, in no order.
func (c *Cache) All() iter.Seq[*actor.Run] { return maps.Values(c.runs) }

// Len is how many they are.
func (c *Cache) Len() int { return len(c.runs) }

// Add adds a run that need not be loaded: the workflow id has none in the history.
func (c *Cache) Add(r *actor.Run) {
	c.runs[r.WorkflowID] = r
	c.touch(r)
}
