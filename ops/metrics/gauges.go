package metrics

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/ops/audit"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const (
	// readEvery is how often the master asks for what costs requests.
	readEvery = 15 * time.Second
	// mostLocks bounds the locks that are counted; there may be many thousands.
	mostLocks = 10_000
	// mostListed bounds the schedules, and the always-on workflows, that are read.
	mostListed = 1_000
)

// readings are what the master has read. Each is empty while it cannot be read, and on other nodes.
type readings struct {
	at        time.Time
	lists     []schemas.TaskListInfo
	dead      []schemas.DeadCount
	locks     *[2]int // held and waiting
	schedules []ops.ScheduleLine
	alwaysOn  []alwaysOn
	open      []openType
	lag       *int64 // of the index
	nodes     map[schemas.NodeStatus]int
}

// audited is what the audits of the master have said.
type audited struct {
	findings map[audit.Standing]int
	paused   map[schemas.Cause]int
}

// Source is what the readings of the master come from.
type Source struct {
	// Client asks the brokers and the master. Required.
	Client *drover.Client
	// Nodes are counted by the master of the home. Defaults to none.
	Nodes *nodes.Registry
	// Log is told of what cannot be read. Defaults to none.
	Log logrus.FieldLogger
}

// Lead reads what costs requests, now and each 15 seconds, until ctx ends; then nothing of that is
// shown any more. It is a task of the master, and returns nil.
func (n *Namespace) Lead(ctx context.Context, from Source) error {
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.read, n.audited = readings{}, audited{}
	}()
	for {
		r := from.read(ctx)
		n.mu.Lock()
		n.read = r
		n.mu.Unlock()
		if err := sleep.For(ctx, readEvery); err != nil {
			return nil
		}
	}
}

// Audited takes what an audit of the master has found, and what stands of all of them.
func (n *Namespace) Audited(r *audit.Report, standing map[audit.Standing]int) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.audited.findings = standing
	if r.Paused != nil {
		n.audited.paused = r.Paused
	}
}

func (s Source) read(ctx context.Context) (r readings) {
	ctx, cancel := context.WithTimeout(ctx, readEvery)
	defer cancel()
	r.at = time.Now()
	log := logx.Or(s.Log)
	note := func(what string, err error) bool {
		if err != nil && ctx.Err() == nil {
			log.WithError(err).WithField("what", what).Debug("not in the metrics now")
		}
		return err == nil
	}
	if lists, err := s.Client.TaskLists(ctx); note("task lists", err) {
		r.lists = lists
	}
	if dead, err := s.Client.CountDeadLetters(ctx, drover.DeadOptions{}); note("dead letters", err) {
		r.dead = dead
	}
	var locks [2]int
	seen, err := 0, error(nil)
	for l, e := range s.Client.Locks(ctx, drover.LocksOptions{}) {
		if err = e; err != nil || seen == mostLocks {
			break
		}
		seen++
		locks[0], locks[1] = locks[0]+len(l.Holders), locks[1]+len(l.Waiters)
	}
	if note("locks", err) {
		r.locks = &locks
	}
	err = nil
	for l, e := range s.Client.Schedules(ctx, drover.SchedulesOptions{Limit: mostListed}) {
		if err = e; err != nil {
			break
		}
		r.schedules = append(r.schedules, l)
	}
	note("schedules", err)
	err = nil
	for l, e := range s.Client.AlwaysOn(ctx, drover.AlwaysOnOptions{Limit: mostListed}) {
		if err = e; err != nil {
			break
		}
		if l.Stopped {
			continue
		}
		w := alwaysOn{id: l.AlwaysOn.Start.WorkflowID}
		if l.Open {
			w.up = 1
		}
		r.alwaysOn = append(r.alwaysOn, w)
	}
	note("always-on workflows", err)
	open, err := s.Client.Groups(ctx, "status != 'closed' GROUP BY type", nil)
	if note("open runs", err) {
		if open.Index.Lag >= 0 {
			r.lag = &open.Index.Lag
		}
		for _, g := range open.Groups {
			if open.Index.Building == 0 {
				r.open = append(r.open, openType{g.Values[0], g.Count})
			}
		}
	}
	if s.Nodes != nil {
		all, err := s.Nodes.List(ctx)
		if note("nodes", err) {
			r.nodes = map[schemas.NodeStatus]int{}
			for i := range all {
				if !all[i].Malformed {
					r.nodes[all[i].Status]++
				}
			}
		}
	}
	return r
}
