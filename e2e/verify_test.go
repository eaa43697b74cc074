package e2e

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// archive is everything that the history streams hold, and what is wrong with it.
type archive struct {
	violations []checker.Violation
	// signals counts the inputs of the signals of a workflow id, over all its runs.
	signals map[string]map[string]int
	// closes counts the closing events of each run.
	closes map[string]int
	runs   map[string]bool
	// ahead counts the decisions that came with outcomes: they have the times of these, which an answer that comes later never has.
	ahead int
}

// read reads every history of the world and checks it as it goes.
func (w *world) read() *archive {
	w.t.Helper()
	ctx, cancel := w.bounded()
	defer cancel()
	a := &archive{signals: map[string]map[string]int{}, closes: map[string]int{}, runs: map[string]bool{}}
	for partition := 0; ; partition++ {
		ids := map[string]*checker.Workflow{}
		fence := uint64(0)
		err := natsconn.Of(w.client).Scan(ctx, namespace.StreamHistory(partition), natsconn.ReadOptions{}, func(m natsconn.Stored) error {
			if m.Subject == namespace.Fence(partition) {
				fence = m.Seq
				return nil
			}
			return a.record(ids, fence, m)
		})
		if errors.Is(err, natsconn.ErrNoStream) && partition > 0 {
			break
		}
		if err != nil {
			w.t.Fatalf("partition %d: %v", partition, err)
		}
		for _, c := range ids {
			a.violations = append(a.violations, c.End()...)
		}
	}
	return a
}

func (a *archive) record(ids map[string]*checker.Workflow, fence uint64, m natsconn.Stored) error {
	_, id, run, err := subject.ParseHistory(m.Subject)
	if err != nil {
		return err
	}
	var r schemas.Record
	if err := schemas.Unmarshal(m.Data, &r); err != nil {
		return err
	}
	if ids[id] == nil {
		ids[id] = checker.NewWorkflow(id)
	}
	a.violations = append(a.violations, ids[id].Record(&r, m.Data, schemas.At(m.Time))...)
	if r.Fence != fence { // the record of an owner who had been followed by another
		a.violations = append(a.violations, checker.Violation{Rule: checker.RuleFence, WorkflowID: id, Run: run, EventID: r.First, Detail: "it stands after another owner's fence"})
	}
	a.runs[run] = true
	success := schemas.Timestamp(0)
	for _, e := range r.Events {
		switch e.Attributes.(type) {
		case *schemas.ActivitySuccess:
			success = e.Time
		case *schemas.DeciderCompleted:
			if e.Time == success {
				a.ahead++
			}
		}
		if s, ok := e.Attributes.(*schemas.Signal); ok {
			if a.signals[id] == nil {
				a.signals[id] = map[string]int{}
			}
			a.signals[id][string(s.Input)]++
		}
		if e.Type().Closes() {
			a.closes[run]++
		}
	}
	return nil
}

// verify is the end of every test that makes histories: they are checked here, and by the command.
func (w *world) verify() *archive {
	w.t.Helper()
	a := w.read()
	for _, v := range a.violations {
		w.t.Errorf("violation: %s", v)
	}
	r := runDrover(w.t, w.url, "verify", "--json", "--timeout", "60s")
	var said struct {
		OK         bool                `json:"ok"`
		Runs       int                 `json:"runs"`
		Violations []checker.Violation `json:"violations"`
	}
	if err := json.Unmarshal([]byte(r.Stdout), &said); err != nil || r.Code != 0 || !said.OK || len(said.Violations) != 0 {
		w.t.Fatalf("drover verify: got code %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	if said.Runs < len(a.runs) {
		w.t.Fatalf("drover verify has seen %d runs, want %d", said.Runs, len(a.runs))
	}
	return a
}

// The checker of these tests can fail: a fork is found.
func TestVerifyFindsAFork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.embedded("--profile", "dev", "--partitions", "1")
	w.role("stranger-decider", "order")
	run := w.start("order", "o", nil, startOptions{})
	w.completes(run, `"done"`)
	w.verify()
	ctx, cancel := w.bounded()
	defer cancel()
	last, err := natsconn.Of(w.client).LastBySubject(ctx, namespace.StreamHistory(0), namespace.History(0, "o", run.RunID))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := natsconn.Of(w.client).PublishSync(ctx, last.Subject, nil, last.Data); err != nil {
		t.Fatal(err)
	}
	if a := w.read(); len(a.violations) == 0 {
		t.Fatal("a record twice, and no violation")
	}
	if r := runDrover(t, w.url, "verify"); r.Code != 1 {
		t.Fatalf("drover verify: got code %d, want 1", r.Code)
	}
}

// idle is verify for a service that has nothing under way.
func (w *world) idle(flags ...string) {
	w.t.Helper()
	r := runDrover(w.t, w.url, append([]string{"verify", "--idle", "--json", "--timeout", "60s"}, flags...)...)
	var said struct {
		Violations []checker.Violation `json:"violations"`
	}
	if err := json.Unmarshal([]byte(r.Stdout), &said); err != nil || r.Code != 0 {
		for _, v := range said.Violations {
			w.t.Errorf("violation: %s", v)
		}
		w.t.Fatalf("drover verify --idle %s: got code %d, %s", strings.Join(flags, " "), r.Code, r.Stderr)
	}
}
