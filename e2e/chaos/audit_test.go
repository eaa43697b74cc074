package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// archive is what the histories of a round hold.
type archive struct {
	signals map[string][]string // values of each workflow id, in the order of the history
	closes  map[string]int      // closing events of each run
	runs    map[string]string   // workflow id of each run
	once    map[string]bool     // "run.activity" that must not run twice
	done    map[string]bool     // "run.activity" that has succeeded
	fences  int
	ahead   int // decisions that came with outcomes
}

// audit checks what is stored, when nothing is under way any more. first is the number of the round's first operation.
func (w *world) audit(ctx context.Context, round, first int) {
	w.t.Helper()
	began := time.Now()
	w.sweep(ctx, round)
	w.verify(ctx)
	w.t.Logf("verified after %v", time.Since(began).Round(milli))
	ops, err := w.rec.Ops(first)
	if err != nil {
		w.violation("the recording is damaged: %v", err)
	}
	a, err := w.read(ctx)
	if err != nil {
		w.violation("the histories cannot be read: %v", err)
		return
	}
	dead, err := w.dead(ctx)
	if err != nil {
		w.violation("the dead letters cannot be read: %v", err)
		return
	}
	w.ended(a, ops)
	w.kept(a, dead, ops)
	w.onlyOnce(a)
	w.nothingLeft(ctx, a)
	w.t.Logf("nothing left after %v", time.Since(began).Round(milli))
	w.model(a, dead, ops)
	w.report.recoveries(byPartition(ops))
	w.report.Runs, w.report.TakeOvers, w.report.Workflows, w.report.Ahead = len(a.runs), a.fences, int(w.workflows.Load()), int64(a.ahead)
}

// sweep ends what scenes have left open: a start that nobody knew of may come after its scene was over.
func (w *world) sweep(ctx context.Context, round int) {
	for run, err := range w.direct.List(ctx, drover.ListOptions{Prefix: fmt.Sprintf("r%d-", round), Type: holdType, Status: schemas.StatusOpen}) {
		if err != nil {
			w.violation("the open runs cannot be listed: %v", err)
			return
		}
		err := w.direct.Run(run.WorkflowID, run.Run).Terminate(ctx, nil)
		if err != nil && !errors.Is(err, drover.ErrClosed) {
			w.violation("%s cannot be ended: %v", run.WorkflowID, err)
		}
	}
}

// verify runs "drover verify": no rule may be broken, and what was decided must be done within the bound.
func (w *world) verify(ctx context.Context) {
	for limit := time.Now().Add(patience); ; {
		cmd := exec.CommandContext(ctx, binary, "verify", "--json", "--idle", "--timeout", "60s")
		cmd.Env = append(os.Environ(), "NATS_URL="+w.urls[0])
		out, _ := cmd.Output()
		var said struct {
			OK         bool              `json:"ok"`
			Events     int               `json:"events"`
			Violations []json.RawMessage `json:"violations"`
		}
		err := json.Unmarshal(out, &said)
		if err == nil && said.OK {
			w.report.Events = said.Events
			return
		}
		if time.Now().After(limit) {
			w.violation("drover verify --idle: %s %v", out, err)
			return
		}
		sleep.For(ctx, 500*time.Millisecond)
	}
}

// read reads every history.
func (w *world) read(ctx context.Context) (*archive, error) {
	a := &archive{signals: map[string][]string{}, closes: map[string]int{}, runs: map[string]string{}, once: map[string]bool{}, done: map[string]bool{}}
	for p := range partitions {
		names := map[string]string{} // of scheduled events: "run.activity"
		err := natsconn.Of(w.direct).Scan(ctx, namespace.StreamHistory(p), natsconn.ReadOptions{}, func(m natsconn.Stored) error {
			if m.Subject == namespace.Fence(p) {
				a.fences++
				return nil
			}
			var r schemas.Record
			if err := schemas.Unmarshal(m.Data, &r); err != nil {
				return err
			}
			a.runs[r.Run] = r.WorkflowID
			for _, e := range r.Events {
				a.event(&r, e, names)
			}
			a.ahead += ahead(r.Events)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("partition %d: %w", p, err)
		}
	}
	return a, nil
}

func (a *archive) event(r *schemas.Record, e schemas.Event, names map[string]string) {
	key := func(id int64) string { return fmt.Sprintf("%s %d", r.Run, id) }
	if v, ok := signaled(e.Attributes); ok {
		a.signals[r.WorkflowID] = append(a.signals[r.WorkflowID], v)
	}
	switch x := e.Attributes.(type) {
	case *schemas.ActivityScheduled:
		names[key(e.ID)] = r.Run + "." + x.ActivityID
		a.once[r.Run+"."+x.ActivityID] = x.NotIdempotent
	case *schemas.ActivitySuccess:
		a.done[names[key(x.ScheduledEventID)]] = true
	}
	if e.Type().Closes() {
		a.closes[r.Run]++
	}
}

// ahead counts the decisions that came with outcomes: they have the times of these, which an answer that comes later never has.
func ahead(events []schemas.Event) (n int) {
	var success schemas.Timestamp
	for _, e := range events {
		switch e.Attributes.(type) {
		case *schemas.ActivitySuccess:
			success = e.Time
		case *schemas.DeciderCompleted:
			if e.Time == success {
				n++
			}
		}
	}
	return n
}

// dead returns the values of signals that came too late, by workflow id, in order.
func (w *world) dead(ctx context.Context) (map[string][]string, error) {
	all := map[string][]string{}
	for letter, err := range w.direct.DeadLetters(ctx, drover.DeadOptions{}) {
		if err != nil {
			return nil, err
		}
		_, id, name, err := subject.ParseSignalStored(letter.Subject)
		if err != nil || name != poke {
			continue
		}
		var v string
		if schemas.Payload(letter.Body).Decode(&v) == nil {
			all[id] = append(all[id], v)
		}
	}
	return all, nil
}

// ended checks that every run of the load has ended, once.
func (w *world) ended(a *archive, ops []Op) {
	for run, id := range a.runs {
		if n := a.closes[run]; n != 1 && !slices.Contains(w.probes[:], id) {
			w.violation("run %s of %s has ended %d times, want once", run, id, n)
		}
	}
	for _, o := range ops {
		if o.Kind == Begin && o.Outcome == OK && a.runs[o.Result] != o.Key {
			w.violation("start of %s was acknowledged with run %s, which is in no history", o.Key, o.Result)
		}
	}
}

// kept checks that each acknowledged signal is in one place, and one that nobody knows of in one at most.
func (w *world) kept(a *archive, dead map[string][]string, ops []Op) {
	found := map[string]int{}
	for _, places := range []map[string][]string{a.signals, dead} {
		for id, values := range places {
			for _, v := range values {
				found[id+"\x00"+v]++
			}
		}
	}
	for _, o := range ops {
		if o.Kind != Append {
			continue
		}
		n := found[o.Key+"\x00"+o.Arg]
		if o.Outcome == OK && n != 1 || n > 1 || o.Outcome == Failed && n != 0 {
			w.violation("%s: it is stored %d times", o, n)
		}
	}
}

// onlyOnce checks the notes of the workers: what must not run twice has not, and what has succeeded has run.
func (w *world) onlyOnce(a *archive) {
	files, err := os.ReadDir(w.notes)
	if err != nil {
		w.violation("%v", err)
	}
	ran := map[string]bool{}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(w.notes, f.Name()))
		if err != nil {
			w.violation("%v", err)
		}
		n := strings.Count(string(b), "\n")
		ran[f.Name()] = n > 0 // without a line its worker was killed between the name and the line
		if a.once[f.Name()] && n > 1 {
			w.violation("activity %s is not idempotent and has run %d times:\n%s", f.Name(), n, b)
		}
	}
	for name := range a.done {
		if !ran[name] {
			w.violation("activity %s has succeeded and no worker has run it", name)
		}
	}
}

// leaseTime is how long a task may stay whose acknowledgement was lost: until it is delivered again and dropped.
const leaseTime = 15 * time.Second

// nothingLeft checks that nothing stays for runs that have closed (I15): no task, no alarm, and no claim of a
// node that is gone. Acknowledgements of tasks and deletions of alarms are tried once, so it takes a while, and what is
// left then is for the audit to remove.
func (w *world) nothingLeft(ctx context.Context, a *archive) {
	var left []string
	began := time.Now()
	for time.Since(began) < patience {
		var err error
		if left, err = w.left(ctx, a); err != nil {
			left = []string{err.Error()}
		}
		if len(left) == 0 {
			return
		}
		if time.Since(began) > leaseTime {
			w.report.Audits++
			w.t.Logf("left to the audit: %s", strings.Join(left, "; "))
			cmd := exec.CommandContext(ctx, binary, "audit", "--timeout", "60s")
			cmd.Env = append(os.Environ(), "NATS_URL="+w.urls[0])
			out, err := cmd.CombinedOutput()
			w.t.Logf("drover audit: %v\n%s", err, out)
		}
		sleep.For(ctx, 300*time.Millisecond)
	}
	w.violation("left over for runs that have closed: %s", strings.Join(left, "; "))
}

func (w *world) left(ctx context.Context, a *archive) ([]string, error) {
	var left []string
	first, last, err := natsconn.Of(w.direct).StreamState(ctx, namespace.StreamTasks(planList))
	if err != nil && !errors.Is(err, natsconn.ErrNoStream) {
		return nil, err
	}
	if err == nil && first <= last {
		left = append(left, fmt.Sprintf("tasks from %d to %d", first, last))
	}
	for p := range partitions {
		err := natsconn.Of(w.direct).Scan(ctx, namespace.StreamAlarms(p), natsconn.ReadOptions{HeadersOnly: true}, func(m natsconn.Stored) error {
			words := strings.Split(m.Subject, ".")
			if run := words[len(words)-1]; a.closes[run] == 0 {
				return nil
			}
			// A replica of a NATS node that was killed may have again what was deleted, for good; what counts is what the
			// leader has. It is asked for the run, for another message may stand there under the number.
			switch _, err := natsconn.Of(w.direct).LastBySubject(ctx, namespace.StreamAlarms(p), m.Subject); {
			case errors.Is(err, natsconn.ErrNotFound):
				w.undeleted[m.Subject] = true
				w.report.Undeleted = len(w.undeleted)
			case err != nil:
				return err
			default:
				left = append(left, "alarm "+m.Subject)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for l, err := range w.direct.Locks(ctx, drover.LocksOptions{}) {
		if err != nil {
			return nil, err
		}
		left = append(left, fmt.Sprintf("lock %s with %+v and %d that wait", l.Lock, l.Holders, len(l.Waiters)))
	}
	held, err := w.observer().List(ctx)
	if err != nil {
		return nil, err
	}
	count := 0
	for _, h := range held {
		if h.Expired || h.Malformed {
			left = append(left, "claim "+h.Key+" of "+h.Node+", which has expired")
		}
		if _, ok := claims.ParsePartition(h.Key); ok {
			count++
		}
	}
	if count != partitions {
		left = append(left, fmt.Sprintf("%d partitions are owned, want %d", count, partitions))
	}
	return left, nil
}

// model hands the recording to the models, with what has become of each list at the end. Signals that came too late
// stand after those of the history, as they were stored after them.
func (w *world) model(a *archive, dead map[string][]string, ops []Op) {
	ids := map[string]bool{}
	for _, o := range ops {
		if o.Kind == Append {
			ids[o.Key] = true
		}
	}
	now := time.Now().UnixNano()
	for id := range ids {
		// What nobody knows of may still come, so it is judged like any other: it is there, or it is not.
		values := append(slices.Clone(a.signals[id]), dead[id]...)
		ops = append(ops, Op{Client: -1, Kind: Final, Key: id, Call: now, Return: now + 1, Outcome: OK, Values: values})
	}
	v := Check(ops, CheckOptions{Dir: w.dir})
	w.report.Judged += v.Keys
	w.report.Undecided = append(w.report.Undecided, v.Undecided...)
	for _, text := range v.Violations {
		w.violation("%s", text)
	}
}

// claimers judges what the claimers have recorded, from the beginning.
func (w *world) claimers() {
	files, err := filepath.Glob(filepath.Join(w.taken, "*.jsonl"))
	if err != nil {
		w.violation("%v", err)
	}
	var all []Op
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			w.violation("%v", err)
			continue
		}
		// A claimer may have been killed within a line; the next one has written after it.
		for line := range strings.Lines(string(b)) {
			var o Op
			if json.Unmarshal([]byte(line), &o) == nil {
				all = append(all, o)
			}
		}
	}
	for _, o := range all {
		if o.Kind == Take {
			w.report.Claims++
		}
	}
	v := Check(all, CheckOptions{Dir: w.dir, Timeout: time.Minute})
	w.report.Judged += v.Keys
	w.report.Undecided = append(w.report.Undecided, v.Undecided...)
	for _, text := range v.Violations {
		w.violation("%s", text)
	}
}

func byPartition(ops []Op) map[string][]Op {
	all := map[string][]Op{}
	for _, o := range ops {
		if o.Kind == Probe {
			all[o.Key] = append(all[o.Key], o)
		}
	}
	return all
}
