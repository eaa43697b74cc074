package retention_test

import (
	"context"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/internal/sample"
	"github.com/droverhq/drover/ops/retention"
	"github.com/droverhq/drover/schemas"
)

// house is a whole Drover in virtual time, with a janitor that passes when the test says so.
type house struct {
	*drovertest.Env
	t *testing.T
	j *retention.Janitor
	o retention.Options
}

// The default is what fits into a run of all tests.
var everyCut = flag.Int("cuts", 0, "retention: crash before every n-th request; 0 = before every other one, 1 = before all of them")

// cuts are the requests of n before which a test crashes. A share begins anywhere, so that in the end all have their turn.
func cuts(t *testing.T, n int) (all []int) {
	t.Helper()
	step := *everyCut
	if step == 0 {
		step = 2
	}
	for cut := rand.IntN(step); cut < n; cut += step {
		all = append(all, cut)
	}
	t.Logf("%d of %d cuts: %v", len(all), n, all)
	return all
}

const ns = subject.Namespace("default")

// says is the input of the test's workflows: what they decide, one step for each time they are asked.
type says struct {
	Retention []string `json:"retention,omitempty"`
	Hash      string   `json:"hash,omitempty"`
	Child     *says    `json:"child,omitempty"`
	ChildID   string   `json:"childId,omitempty"`
	Abandon   bool     `json:"abandon,omitempty"` // do not wait for the child
	Stay      bool     `json:"stay,omitempty"`    // until the signal go
	Again     int      `json:"again,omitempty"`   // continue as new so often
	Done      bool     `json:"done,omitempty"`    // the child has closed
}

func decide(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
	h := task.Events()
	var in says
	begun, signaled := false, false
	if len(task.Context()) > 0 {
		if err := json.Unmarshal(task.Context(), &in); err != nil {
			return nil, err
		}
	}
	for _, e := range h {
		switch a := e.Attributes.(type) {
		case *schemas.WorkflowStarted:
			begun = true
			if len(a.Input) > 0 {
				if err := json.Unmarshal(a.Input, &in); err != nil {
					return nil, err
				}
			}
		case *schemas.Signal:
			signaled = signaled || a.SignalName == "go"
		case *schemas.ChildSuccess:
			in.Done = true
		}
	}
	after, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	task.SetContext(after)
	var all []schemas.Decision
	add := func(d schemas.DecisionAttributes) { all = append(all, schemas.Decide(d)) }
	if begun {
		for _, text := range in.Retention {
			add(&schemas.SetRetention{Retention: text, Hash: in.Hash})
		}
		if in.Child != nil {
			body, err := json.Marshal(in.Child)
			if err != nil {
				return nil, err
			}
			add(&schemas.StartChild{WorkflowID: in.ChildID, WorkflowType: "child", Input: body, ChildPolicy: schemas.ChildAbandon})
		}
	}
	switch {
	case in.Stay && !signaled, in.Child != nil && !in.Abandon && !in.Done:
	case in.Again > 0:
		in.Again, in.Done = in.Again-1, false
		body, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		add(&schemas.ContinueAsNew{Input: body})
	default:
		add(&schemas.CompleteWorkflow{Result: schemas.Payload(`"done"`)})
	}
	return all, nil
}

// live runs fn in a house with one partition.
func live(t *testing.T, o retention.Options, fn func(h *house)) {
	t.Helper()
	sample.OneOfEight(t)
	drovertest.Run(t, &drovertest.Options{Partitions: 1}, func(t *testing.T, e *drovertest.Env) {
		o.Conn, o.Namespace, o.Partitions = natsconn.Of(e.Client), ns, 1
		o.Flows = func(context.Context) (map[string]bool, error) { return map[string]bool{"flow": true}, nil }
		h := &house{Env: e, t: t, o: o}
		h.another()
		w := e.Client.Deciders(nil)
		for _, typ := range []string{"flow", "raw", "child", "other"} {
			w.Register(typ, decider.Func(decide))
		}
		e.Go(w)
		fn(h)
	})
}

// another is the janitor of another master, which knows nothing.
func (h *house) another() {
	h.t.Helper()
	j, err := retention.New(h.o)
	if err != nil {
		h.t.Fatal(err)
	}
	h.j = j
}

func (h *house) start(typ, id string, in says) *drover.Run {
	h.t.Helper()
	r, err := h.Client.Start(h.t.Context(), typ, in, &drover.StartOptions{ID: id})
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// run starts a workflow and waits for its end.
func (h *house) run(typ, id string, in says) string {
	h.t.Helper()
	r := h.start(typ, id, in)
	return h.Wait(r).Run
}

// settle lets checkpoints and the purging of the logs come about, after a run that is the last in the history, in the inbox and
// among the signals, and so the witness of all three.
func (h *house) settle() {
	h.t.Helper()
	id := "witness-" + time.Now().Format("150405.000000")
	r := h.start("other", id, says{Retention: []string{"forever"}, Child: &says{Retention: []string{"forever"}, Hash: "witness"}, ChildID: id + "-child", Stay: true})
	h.Await(id, schemas.EventChildSuccess)
	time.Sleep(time.Second) // the decider is asked about the child before
	if err := r.Signal(h.t.Context(), "go", nil); err != nil {
		h.t.Fatal(err)
	}
	h.Wait(r)
	time.Sleep(3 * time.Minute)
}

func (h *house) pass() *retention.Report {
	h.t.Helper()
	r, err := h.j.Pass(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// kept are the workflow ids that have a history, without the witnesses.
func (h *house) kept() string {
	h.t.Helper()
	var all []string
	err := natsconn.Of(h.Client).Scan(h.t.Context(), ns.StreamHistory(0), natsconn.ReadOptions{FilterSubjects: []string{ns.AllRuns(0)}, HeadersOnly: true}, func(s natsconn.Stored) error {
		_, wid, _, err := subject.ParseHistory(s.Subject)
		if !strings.HasPrefix(wid, "witness-") {
			all = append(all, wid)
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

func (h *house) wantKept(want string) {
	h.t.Helper()
	got := h.kept()
	if got == want {
		return
	}
	h.t.Errorf("kept: got %q, want %q", got, want)
	for id := range strings.FieldsSeq(got) {
		h.t.Logf("%s: %+v", id, h.explain(id, ""))
	}
}

func (h *house) explain(id, run string) *schemas.RetentionResponse {
	h.t.Helper()
	a, err := h.j.Explain(h.t.Context(), id, run)
	if err != nil {
		h.t.Fatal(err)
	}
	return a
}
