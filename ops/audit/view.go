package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// view is what a pass has read.
type view struct {
	a      *Auditor
	full   bool // runs, tasks and alarms too
	second bool // the second look

	lists    []schemas.TaskListInfo
	unlisted bool              // nobody tells of the lists, and no task is read
	read     map[string]uint64 // by list: the last task that was read
	partial  map[string]bool   // lists that are too long to be read
	tasks    map[string]*task  // by token
	at       map[place]*task   // the same, and those of one token, by where they are
	alarms   map[uint64]armed  // of the partition that is looked at, by the key of their runs
	seed     maphash.Seed      // of the keys
	armed    int
	ringers  map[int]string // who rings the alarms, by partition
	began    schemas.Timestamp
	open     int
	ends     []uint64      // of the inboxes, after the first look
	silent   map[int]error // partitions whose owner does not answer
	unseen   unseen
	runs     map[string]*schemas.AuditRun // second look: what the owners said, by the run asked for
	children map[int]map[string][]parent  // by partition and run: who waits for it
	deciders map[string]*waiting          // by workflow type: decisions that nobody listens for
	paused   map[schemas.Cause]int        // first look: paused runs by cause

	locks map[string]*schemas.LockRecord // those in use, by key; nil if they cannot be read

	undecided int
}

// task is what the audit needs of one.
type task struct {
	Token      string `json:"token"`
	WorkflowID string `json:"workflowId"`
	Run        string `json:"run"`
	ActivityID string `json:"activityId"`

	list    string
	seq     uint64
	subject string
	at      schemas.Timestamp
	wanted  bool // a run waits for it
}

// place is where a task is.
type place struct {
	list string
	seq  uint64
}

// restsOn tells whether an attempt needs a task. One that goes on after a lost worker has the
// message of an earlier attempt, with the token of that: without the message nobody would miss its
// worker. An owner that does not say which message it is may be an older one.
func restsOn(act *schemas.AuditActivity, at place, token string) bool {
	switch {
	case act.Token == token:
		return true
	case act.StartedAt == 0 || act.List != at.list:
		return false
	case act.TaskSequence != 0:
		return act.TaskSequence == at.seq
	}
	return activityOf(act.Token) == activityOf(token)
}

// activityOf is what the tokens of all attempts of an activity have in common.
func activityOf(token string) string { return token[:strings.LastIndexByte(token, '.')+1] }

// taskOf is the task that an attempt needs; nil if it was not seen.
func (v *view) taskOf(act *schemas.AuditActivity) *task {
	if t := v.at[place{act.List, act.TaskSequence}]; t != nil && act.TaskSequence != 0 {
		return t
	}
	return v.tasks[act.Token]
}

func parseTask(body []byte) (*task, error) {
	t := &task{}
	return t, json.Unmarshal(body, t)
}

// armed is an alarm in its stream.
type armed struct {
	seq uint64
	due schemas.Timestamp
}

func (a armed) compare(other armed) int { return cmp.Compare(a.seq, other.seq) }

// key stands for a run whose alarm is remembered: its name would be three times as long, and there
// may be a million. If two runs ever had the same key, what came of it would not be found at the
// second look, nor hidden from the next pass, whose keys are others.
func (v *view) key(wid, run string) uint64 {
	return maphash.Comparable(v.seed, [2]string{wid, run})
}

// parent is a run that waits for a child.
type parent struct {
	workflowID, run string
	child           schemas.OpenChild
}

// waiting counts runs that wait for the same.
type waiting struct {
	runs    int
	since   schemas.Timestamp
	example string
}

func newView(a *Auditor, full bool) *view {
	v := &view{
		a: a, full: full, seed: maphash.MakeSeed(), read: map[string]uint64{},
		partial: map[string]bool{}, tasks: map[string]*task{}, at: map[place]*task{},
		silent: map[int]error{}, unseen: newUnseen(), ringers: map[int]string{},
		paused: map[schemas.Cause]int{},
	}
	v.forget()
	return v
}

// forget drops what the owners have said.
func (v *view) forget() {
	v.runs, v.children, v.deciders = map[string]*schemas.AuditRun{}, map[int]map[string][]parent{},
		map[string]*waiting{}
}

// again makes it the second look.
func (v *view) again() {
	v.second, v.silent = true, map[int]error{}
}

// silence leaves a partition out of this look.
func (v *view) silence(p int, err error) {
	v.silent[p], v.unseen.runs[p] = err, true
}

// unlist notes that nobody tells of the lists.
func (v *view) unlist() {
	v.lists, v.unlisted, v.unseen.lists = nil, true, true
}

func runKey(wid, run string) string { return wid + "\x00" + run }

// mostTasks bounds how many tasks of a list one look reads. A longer list is a backlog, of which
// the lists tell.
const mostTasks = 50_000

// readTasks reads the tasks of all lists, or those that have come since. The server lets nobody
// follow a work queue beside its workers, nor read it directly, so its leader is asked for one
// after another.
func (v *view) readTasks(ctx context.Context) error {
	for _, l := range v.lists {
		if err := v.readList(ctx, l.List); err != nil && !errors.Is(err, natsconn.ErrNoStream) {
			// deleted meanwhile
			return fmt.Errorf("read the tasks of list %s: %w", l.List, err)
		}
	}
	return nil
}

func (v *view) readList(ctx context.Context, list string) error {
	stream, subj := v.a.ns.StreamTasks(list), v.a.ns.AllTasks(list)
	end, err := v.a.o.Conn.StreamLastSeq(ctx, stream)
	if err != nil {
		return err
	}
	for n := 0; v.read[list] < end; n++ {
		if n == mostTasks {
			v.partial[list] = true
			return nil
		}
		m, err := v.a.o.Conn.NextBySubject(ctx, stream, subj, v.read[list]+1)
		if errors.Is(err, natsconn.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		v.read[list] = m.Seq
		v.note(list, m)
	}
	return nil
}

func (v *view) note(list string, s *natsconn.Stored) {
	t, err := parseTask(s.Data)
	if err != nil || t.Token == "" || t.WorkflowID == "" {
		return // not one of ours; workers refuse it
	}
	t.list, t.seq, t.subject, t.at = list, s.Seq, s.Subject, schemas.At(s.Time)
	v.tasks[t.Token], v.at[place{list, s.Seq}] = t, t
}

// markEnds notes how far the inboxes go now.
func (v *view) markEnds(ctx context.Context) error {
	v.ends = make([]uint64, v.a.o.Partitions)
	for p := range v.ends {
		last, err := v.a.o.Conn.StreamLastSeq(ctx, v.a.ns.StreamIn(p))
		if err != nil {
			return fmt.Errorf("the inbox of partition %d: %w", p, err)
		}
		v.ends[p] = last
	}
	return nil
}

// lags tells whether an owner has not read all that was in its inbox after the first look.
func (v *view) lags(ctx context.Context, p int, owner *schemas.AuditResponse) (bool, error) {
	if !v.second {
		return false, nil
	}
	if owner.Recovering {
		return true, nil
	}
	if owner.Inbox >= v.ends[p] {
		return false, nil
	}
	next, err := v.a.o.Conn.NextBySubject(ctx, v.a.ns.StreamIn(p), v.a.ns.AllIn(p), owner.Inbox+1)
	if errors.Is(err, natsconn.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("the inbox of partition %d: %w", p, err)
	}
	return next.Seq <= v.ends[p], nil
}

// listOf tells how a list stands.
func (v *view) listOf(name string) (schemas.TaskListInfo, bool) {
	i := slices.IndexFunc(v.lists, func(l schemas.TaskListInfo) bool { return l.List == name })
	if i < 0 {
		return schemas.TaskListInfo{}, false
	}
	return v.lists[i], true
}

// notWanted tells whether the owner said, at the second look, that no run waits for a task or an
// alarm.
func (v *view) notWanted(f *Finding) bool {
	r := v.runs[runKey(f.WorkflowID, f.Run)]
	if r == nil || r.Busy || r.Unreadable != "" {
		return false
	}
	if f.Kind == KindAlarmStale {
		return r.Run != f.Run || r.Status.Closed()
	}
	return !slices.ContainsFunc(r.Activities, func(act schemas.AuditActivity) bool {
		return restsOn(&act, place{f.List, f.remove.seq}, f.remove.token)
	})
}

// serverTime is the server's clock, never ahead of it.
func (a *Auditor) serverTime(ctx context.Context) (schemas.Timestamp, error) {
	at, err := a.o.Conn.StreamTime(ctx, a.ns.StreamSignals())
	if err != nil {
		return 0, fmt.Errorf("namespace %s: %w", a.ns, err)
	}
	return schemas.At(at), nil
}

func (a *Auditor) partitionOf(wid string) int { return subject.Partition(wid, a.o.Partitions) }

// when shows an instant and how long ago it was.
func when(now, then schemas.Timestamp) string {
	return fmt.Sprintf("%s (%s)", then.Time().Format(time.RFC3339),
		max(now.Sub(then), 0).Round(time.Millisecond))
}
