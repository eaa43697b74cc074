package audit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// places looks at what is not about one run: claims, owners, logs, lists. It is cheap.
func (a *Auditor) places(ctx context.Context, v *view, s *suspects) error {
	now, err := a.serverTime(ctx)
	if err != nil {
		return err
	}
	held, err := a.holders(ctx)
	if err != nil {
		return err
	}
	if held[claims.Master].Node == "" {
		s.add(Finding{
			Kind:     KindNoMaster,
			Severity: Notice,
			Text: "no node is the master of the namespace: nobody looks after expired " +
				"claims and dead nodes; start a server with the role ops",
		})
	}
	owners := 0
	for p := range a.o.Partitions {
		owner := held[partitionKey(p)].Node
		if owner != "" {
			owners++
		}
		if err := a.placesOf(ctx, v, p, owner, held[alarmsKey(p)].Node, now, s); err != nil {
			return err
		}
	}
	if owners == 0 {
		v.unlist()
		return nil // nobody can be asked
	}
	return a.lookAtLists(ctx, v, now, s)
}

func partitionKey(p int) string { return "partition." + strconv.Itoa(p) }

func alarmsKey(p int) string { return "alarms." + strconv.Itoa(p) }

// holders are the claims that have not expired.
func (a *Auditor) holders(ctx context.Context) (map[string]claims.Info, error) {
	list, err := a.o.Claims.List(ctx)
	if err != nil {
		return nil, err
	}
	held := map[string]claims.Info{}
	for _, i := range list {
		if !i.Expired {
			held[i.Key] = i
		}
	}
	return held, nil
}

// placesOf looks at a partition. The owner and who rings its alarms are empty if there is none.
func (a *Auditor) placesOf(
	ctx context.Context, v *view, p int, owner, ringer string, now schemas.Timestamp, s *suspects,
) error {
	about := Finding{Severity: Fault, Partition: &p}
	if owner == "" {
		f := about
		f.Kind = KindPartitionUnowned
		last, err := lastOwner(ctx, a.o.Conn, a.ns, p)
		if err != nil {
			return err
		}
		f.Text, f.Since = fmt.Sprintf(
			"partition %d has no owner%s; start a server with the role broker", p, last), 0
		s.add(f)
	} else if _, err := ask(ctx, a, "audit",
		&schemas.AuditRequest{V: schemas.Version, Partition: p},
		func(r *schemas.AuditResponse) *schemas.Error { return r.Error }); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f := about
		f.Kind, f.Text = KindOwnerSilent, fmt.Sprintf("node %q holds partition %d and does not "+
			"answer: %v; see how it is, and stop it if it hangs", owner, p, err)
		s.add(f)
		v.silence(p, err)
	}
	if ringer == "" {
		f := about
		f.Kind, f.Text = KindAlarmsUnowned, fmt.Sprintf(
			"nobody rings the alarms of partition %d; start a server with the role timers", p)
		s.add(f)
	}
	if v.full && !v.second { // all alarms will be read
		v.ringers[p], v.began = ringer, now
	} else if err := a.lookOverdue(ctx, v, p, ringer, now, s); err != nil {
		return err
	}
	return a.lookAtLogs(ctx, p, owner, now, s)
}

// cheapAlarms is how many alarms of a partition a cheap pass reads at most: there is one for each
// sleeping run.
const cheapAlarms = 20_000

// lookOverdue looks for alarms of a partition that should have rung.
func (a *Auditor) lookOverdue(
	ctx context.Context, v *view, p int, ringer string, now schemas.Timestamp, s *suspects,
) error {
	if !v.full {
		stream, err := a.o.Conn.JetStream().Stream(ctx, a.ns.StreamAlarms(p))
		if err != nil {
			return fmt.Errorf("the alarms of partition %d: %w", p, err)
		}
		if stream.CachedInfo().State.Msgs > cheapAlarms {
			v.unseen.alarms[p] = true
			return nil
		}
	}
	late := overdue{a: a, now: now}
	err := a.o.Conn.Scan(ctx, a.ns.StreamAlarms(p),
		natsconn.ReadOptions{LastPerSubject: true, BytesPerSecond: natsconn.Leisurely},
		func(m natsconn.Stored) error {
			var alarm schemas.Alarm
			if schemas.Unmarshal(m.Data, &alarm) == nil {
				late.note(alarm.Due)
			}
			return nil
		})
	if err != nil {
		return fmt.Errorf("read the alarms of partition %d: %w", p, err)
	}
	late.tell(p, ringer, s)
	return nil
}

// overdue counts alarms that should have rung.
type overdue struct {
	a      *Auditor
	now    schemas.Timestamp
	n      int
	oldest schemas.Timestamp
}

func (o *overdue) note(due schemas.Timestamp) {
	if o.now.Sub(due) <= o.a.o.Overdue {
		return
	}
	if o.n++; o.oldest == 0 || due < o.oldest {
		o.oldest = due
	}
}

func (o *overdue) tell(p int, ringer string, s *suspects) {
	if o.n == 0 {
		return
	}
	who := "nobody holds the claim to ring them: start a server with the role timers"
	if ringer != "" {
		who = fmt.Sprintf("node %q should ring them, and lags", ringer)
	}
	s.add(Finding{
		Kind: KindAlarmsOverdue, Severity: Fault, Partition: &p, Since: o.oldest,
		Text: fmt.Sprintf("partition %d has %s, the oldest since %s: %s",
			p, plural(o.n, "overdue alarm", "overdue alarms"), when(o.now, o.oldest), who),
	})
}

// lookAtLogs compares the checkpoint of a partition with its logs and its history.
func (a *Auditor) lookAtLogs(
	ctx context.Context, p int, owner string, now schemas.Timestamp, s *suspects,
) error {
	var c schemas.Checkpoint
	body, _, err := a.o.Conn.KVGet(ctx, a.ns.BucketCheckpoints(), partitionKey(p))
	if err == nil {
		err = schemas.Unmarshal(body, &c)
	}
	if err != nil && !errors.Is(err, natsconn.ErrNotFound) {
		return fmt.Errorf("the checkpoint of partition %d: %w", p, err)
	}
	for _, log := range []struct {
		name, stream, filter string
		after                uint64
		text                 string
	}{
		{
			"inbox", a.ns.StreamIn(p), a.ns.AllIn(p), c.Inbox.Sequence,
			"the inbox of partition %d has messages that nobody has dealt with since %s",
		},
		{
			"signals", a.ns.StreamSignals(), a.ns.SignalsOf(p), c.Signals.Sequence,
			"partition %d has signals that nobody has dealt with since %s",
		},
		{
			"effects", a.ns.StreamHistory(p), a.ns.AllRuns(p), c.Effects,
			"partition %d has records whose tasks, alarms or messages are not all stored since %s",
		},
	} {
		m, err := a.o.Conn.NextBySubject(ctx, log.stream, log.filter, log.after+1)
		if errors.Is(err, natsconn.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("stream %s: %w", log.stream, err)
		}
		at := schemas.At(m.Time)
		age := now.Sub(at)
		if age < a.o.Waiting {
			continue
		}
		f := Finding{
			Kind: KindBacklog, Severity: Notice, Partition: &p, Since: at, detail: log.name,
		}
		if age >= a.o.Stuck {
			f.Severity = Fault
		}
		f.Text = fmt.Sprintf(log.text, p, when(now, at))
		if owner != "" {
			f.Text += fmt.Sprintf("; node %q owns it", owner)
		} else {
			f.Text += "; it has no owner"
		}
		s.add(f)
	}
	return nil
}

// lookAtLists asks how the task lists stand. Tasks wait in vain if no worker waits and none is at
// work.
func (a *Auditor) lookAtLists(
	ctx context.Context, v *view, now schemas.Timestamp, s *suspects,
) error {
	out, err := ask(ctx, a, "lists", &schemas.TaskListsRequest{V: schemas.Version},
		func(r *schemas.TaskListsResponse) *schemas.Error { return r.Error })
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		v.unlist()
		return nil
	}
	v.lists, v.unlisted = out.Lists, false
	for i := range out.Lists {
		l := &out.Lists[i]
		tellChanged(l, s)
		if l.Pending == 0 || l.Workers > 0 || l.Working > 0 || l.OldestAt == 0 ||
			now.Sub(l.OldestAt) < a.o.Waiting {
			continue
		}
		s.add(Finding{
			Kind: KindTasksWait, Severity: Notice, List: l.List, Since: l.OldestAt,
			Text: fmt.Sprintf("list %q has %s since %s and no worker: start one",
				l.List, plural(int(l.Pending), "task", "tasks"), when(now, l.OldestAt)),
		})
	}
	return nil
}

// tellChanged tells of consumers that somebody has changed. Nothing is repaired: they belong to the
// workers, who may be told to make them anew, while an operator may have meant what was done. Those
// that were deleted the servers make anew when they are asked.
func tellChanged(l *schemas.TaskListInfo, s *suspects) {
	about := Finding{Kind: KindConsumerChanged, Severity: Fault, List: l.List}
	if len(l.GivingUp) > 0 {
		f := about
		f.detail, f.Text = "giving up", fmt.Sprintf(
			"list %q has consumers that give a task up after so many deliveries (max_deliver): "+
				"%s; somebody has changed them: %s", l.List, strings.Join(l.GivingUp, ", "),
			schemas.GivingUpHint)
		s.add(f)
	}
	if len(l.Missing) > 0 {
		f := about
		f.detail, f.bySelf = "missing", "the servers have made them anew"
		f.Text = fmt.Sprintf("list %q lacks consumers: %s; somebody has deleted them: %s",
			l.List, strings.Join(l.Missing, ", "), schemas.MissingHint)
		s.add(f)
	}
	if len(l.Untaken) > 0 {
		f := about
		f.detail, f.Text = "untaken", fmt.Sprintf(
			"list %q has tasks that no consumer takes: %s; somebody has changed one: %s",
			l.List, strings.Join(l.Untaken, ", "), schemas.UntakenHint)
		s.add(f)
	}
}
