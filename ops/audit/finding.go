package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/droverhq/drover/schemas"
)

// Kind is what a finding is about. The words are on the wire of "drover audit --json"; append-only.
type Kind string

// The kinds. Those of the first group are repaired, those of the second can only be told.
const (
	// KindTaskMissing is an activity that waits for a worker and has no task on its list.
	KindTaskMissing Kind = "task-missing"
	// KindAlarmMissing is a run that something is due for and that has no alarm, or a later one.
	KindAlarmMissing Kind = "alarm-missing"
	// KindDecisionNotAsked is a decision that is wanted and that no decider is asked for.
	KindDecisionNotAsked Kind = "decision-not-asked"
	// KindChildEndLost is a run that waits for a child which has closed.
	KindChildEndLost Kind = "child-end-lost"
	// KindTaskStale is a task that no run waits for.
	KindTaskStale Kind = "task-stale"
	// KindAlarmStale is the alarm of a run that is not open.
	KindAlarmStale Kind = "alarm-stale"
	// KindLockStale is a place in a lock whose run has closed, let go, or never asked;
	// KindLockMissing a run that holds a lock or waits for it, and has no place.
	KindLockStale   Kind = "lock-stale"
	KindLockMissing Kind = "lock-missing"

	// KindPartitionUnowned is a partition that no broker serves, KindOwnerSilent one whose owner
	// does not answer.
	KindPartitionUnowned Kind = "partition-unowned"
	KindOwnerSilent      Kind = "owner-silent"
	// KindAlarmsUnowned is an alarm partition that no timer worker rings.
	KindAlarmsUnowned Kind = "alarms-unowned"
	// KindNoMaster is a namespace that no node is the master of.
	KindNoMaster Kind = "no-master"
	// KindAlarmsOverdue is a partition with alarms that should have rung.
	KindAlarmsOverdue Kind = "alarms-overdue"
	// KindBacklog is a log that is not read, or effects that are not done.
	KindBacklog Kind = "backlog"
	// KindTasksWait is a task list with tasks and without workers.
	KindTasksWait Kind = "tasks-wait"
	// KindConsumerChanged is a task list of which somebody has changed a consumer, so that tasks
	// are given up or go to nobody.
	KindConsumerChanged Kind = "consumer-changed"
	// KindNoDecider is a workflow type that no decider listens for.
	KindNoDecider Kind = "no-decider"
	// KindParked is a run that was paused because its decider failed again and again.
	KindParked Kind = "parked"
	// KindNobodyGoesOn is an activity that began, whose worker is gone, on a list without workers.
	KindNobodyGoesOn Kind = "nobody-goes-on"
	// KindWaitsForNothing is a run that only a signal, an operator or its own timeout can move.
	KindWaitsForNothing Kind = "waits-for-nothing"
	// KindNearsLimit is a run whose history nears the number of events at which it is terminated.
	KindNearsLimit Kind = "nears-limit"
	// KindRequestsForgotten is a run that gets so many requests with ids that they are not
	// remembered for ten minutes.
	KindRequestsForgotten Kind = "requests-forgotten"
	// KindUnreadable is a run whose history cannot be read.
	KindUnreadable Kind = "unreadable"
)

// Severity tells whether something is wrong.
type Severity string

// The severities.
const (
	// Notice: nothing is wrong with the service. Somebody may want to know, or has to do something.
	Notice Severity = "notice"
	// Warning: the service does what it should, and runs stand still until somebody mends their
	// program.
	Warning Severity = "warning"
	// Fault: something is wrong.
	Fault Severity = "fault"
)

// Finding is one thing that was found, twice.
type Finding struct {
	Kind     Kind     `json:"kind"`
	Severity Severity `json:"severity"`
	// WorkflowID and Run name the run, Partition and List the place, where it is about one.
	WorkflowID string            `json:"workflowId,omitempty"`
	Run        string            `json:"run,omitempty"`
	Partition  *int              `json:"partition,omitempty"`
	List       string            `json:"list,omitempty"`
	Since      schemas.Timestamp `json:"since,omitempty"`
	// Text is a sentence with names and times.
	Text string `json:"text"`
	// Done is what was done about it; empty for nothing.
	Done string `json:"done,omitempty"`
	// Repaired: nothing is left to do.
	Repaired bool `json:"repaired,omitempty"`
	// Failed says why a repair did not succeed; the next pass tries again.
	Failed string `json:"failed,omitempty"`

	detail string // with kind and place, tells findings apart
	remove *message
	repair string // the workflow id whose effects are to be repeated
	bySelf string // what the servers have done about it if it is no more at the second look
}

// message is one in a stream that nobody waits for.
type message struct {
	stream  string
	seq     uint64
	subject string
	token   string // of a task
	due     schemas.Timestamp
}

// key tells whether two findings are the same.
func (f *Finding) key() string {
	p := ""
	if f.Partition != nil {
		p = fmt.Sprint(*f.Partition)
	}
	return strings.Join([]string{string(f.Kind), f.WorkflowID, f.Run, p, f.List, f.detail}, "\x00")
}

// wrong tells whether something is wrong and still is.
func (f *Finding) wrong() bool { return f.Severity == Fault && !f.Repaired }

// Report is the outcome of a pass.
type Report struct {
	Namespace string            `json:"namespace"`
	Time      schemas.Timestamp `json:"time"` // when it began, by the server's clock
	Took      schemas.Duration  `json:"took"`
	// Full: runs were looked at, not only places.
	Full bool `json:"full"`
	// Runs, Tasks and Alarms are how many were looked at: open runs, tasks on lists, armed alarms.
	Runs   int `json:"runs"`
	Tasks  int `json:"tasks"`
	Alarms int `json:"alarms"`
	// Undecided are suspicions about partitions whose owner is too far behind to tell.
	Undecided int       `json:"undecided,omitempty"`
	Findings  []Finding `json:"findings"`
	// More counts, by kind, the findings that are not listed. Faults among them were repaired like
	// the others, but for those beyond 10,000 findings: they count as wrong, and the next pass sees
	// to them.
	More map[Kind]int `json:"more,omitempty"`
	// Paused counts the runs that are paused, by cause, if all were looked at; else it is nil.
	Paused map[schemas.Cause]int `json:"-"`

	unseen    unseen
	listed    map[Kind]int
	wrongMore int
}

// OK tells whether nothing is wrong, or everything was repaired.
func (r *Report) OK() bool { return r.Wrong() == 0 }

// Wrong counts what is wrong and was not repaired.
func (r *Report) Wrong() int {
	n := r.wrongMore
	for i := range r.Findings {
		if r.Findings[i].wrong() {
			n++
		}
	}
	return n
}

// Warnings counts the warnings, those that are not listed, too.
func (r *Report) Warnings() int {
	n := r.More[KindParked]
	for i := range r.Findings {
		if r.Findings[i].Severity == Warning {
			n++
		}
	}
	return n
}

// add lists a finding, or counts it if there are enough of its kind.
func (r *Report) add(f Finding, most int) {
	if r.listed == nil {
		r.listed = map[Kind]int{}
	}
	if r.listed[f.Kind]++; r.listed[f.Kind] <= most {
		r.Findings = append(r.Findings, f)
		return
	}
	r.more(f.Kind, 1)
	if f.wrong() {
		r.wrongMore++
	}
}

// leave counts faults that were seen once, and that the next pass has to see to.
func (r *Report) leave(left map[Kind]int) {
	for kind, n := range left {
		r.more(kind, n)
		r.wrongMore += n
	}
}

func (r *Report) more(k Kind, n int) {
	if r.More == nil {
		r.More = map[Kind]int{}
	}
	r.More[k] += n
}

// sort puts what is wrong first.
func (r *Report) sort() {
	rank := func(f *Finding) int {
		switch {
		case f.wrong():
			return 0
		case f.Severity == Fault:
			return 1
		case f.Severity == Warning:
			return 2
		}
		return 3
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(rank(&a)-rank(&b), strings.Compare(string(a.Kind), string(b.Kind)),
			strings.Compare(a.WorkflowID, b.WorkflowID), strings.Compare(a.List, b.List),
			strings.Compare(a.Text, b.Text))
	})
}
