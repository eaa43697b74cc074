package alwayson_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/internal/sample"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/ops/alwayson"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const ns = subject.Namespace("default")

// house is a whole Drover in virtual time, with monitors that the test begins and ends.
type house struct {
	*drovertest.Env
	t *testing.T
	o alwayson.Options

	mu    sync.Mutex
	notes []ops.Operation
}

// decide ends a run as the signals say, or as its input says, and when it is asked to.
func decide(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
	var all []schemas.Decision
	var say func(word string)
	say = func(word string) {
		switch word {
		case "complete":
			all = append(all, schemas.Decide(&schemas.CompleteWorkflow{}))
		case "vanish": // it is purged as soon as that may be once it has ended
			all = append(all, schemas.Decide(&schemas.SetRetention{Retention: "disabled"}))
		case "brief": // the same, and it ends after a minute
			say("vanish")
			all = append(all, decider.Timer("end", time.Minute))
		case "fail":
			all = append(all, schemas.Decide(&schemas.FailWorkflow{Reason: "it was told to"}))
		case "continue":
			all = append(all, schemas.Decide(&schemas.ContinueAsNew{}))
		}
	}
	for _, e := range task.Events() {
		switch a := e.Attributes.(type) {
		case *schemas.WorkflowStarted:
			say(string(a.Input))
		case *schemas.Signal:
			say(a.SignalName)
		case *schemas.TimerExpired:
			say("complete")
		case *schemas.WorkflowCancelRequested:
			all = append(all, schemas.Decide(&schemas.CancelWorkflow{}))
		}
	}
	return all, nil
}

// live runs fn in a house with one partition.
func live(t *testing.T, fn func(h *house)) {
	t.Helper()
	sample.OneOfEight(t)
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		h := &house{Env: e, t: t}
		h.o = alwayson.Options{Conn: natsconn.Of(e.Client), Namespace: ns, Note: func(_ context.Context, o ops.Operation) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.notes = append(h.notes, o)
		}}
		w := e.Client.Deciders(nil)
		w.Register("job", decider.Func(decide))
		e.Go(w)
		fn(h)
		h.alone("w")
	})
}

// master begins a monitor, which ends with the test.
func (h *house) master(o alwayson.Options) { h.t.Helper(); h.masters(o) }

// masters begins a monitor with the first options. When it is killed the next one takes over, some time later.
func (h *house) masters(all ...alwayson.Options) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	var running sync.WaitGroup
	h.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	running.Go(func() {
		for _, o := range all {
			m, err := alwayson.New(o)
			if err == nil {
				err = m.Run(ctx)
			}
			if err != nil && !errors.Is(err, errCut) {
				h.t.Error(err)
			}
			if sleep.For(ctx, 3*time.Second) != nil {
				return
			}
		}
	})
}

// ask asks a verb, again while nobody answers or whoever does cannot.
func ask[Answer any](h *house, verb string, q any, refusal func(*Answer) *schemas.Error) *Answer {
	h.t.Helper()
	body, err := schemas.MarshalJSON(q)
	if err != nil {
		h.t.Fatal(err)
	}
	for tries := 0; ; tries++ {
		ctx, cancel := context.WithTimeout(h.t.Context(), 10*time.Second)
		m, err := natsconn.Of(h.Client).Request(ctx, ns.API(verb), nil, body)
		cancel()
		a := new(Answer)
		if err == nil {
			err = schemas.Unmarshal(m.Data, a)
		}
		if err == nil {
			if e := refusal(a); e == nil || e.Code != schemas.CodeUnavailable {
				return a
			}
		}
		if tries == 20 {
			h.t.Fatalf("%s: %v, %+v", verb, err, a)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// always asks a verb about one.
func (h *house) always(verb string, q any) *ops.AlwaysResponse {
	h.t.Helper()
	return ask(h, verb, q, func(a *ops.AlwaysResponse) *schemas.Error { return a.Error })
}

// add adds an always-on workflow, which must not be refused.
func (h *house) add(a ops.AlwaysOn) *ops.AlwaysResponse {
	h.t.Helper()
	r := h.always("alwaysAdd", &ops.AlwaysAddRequest{V: schemas.Version, AlwaysOn: a, Identity: "tester"})
	if r.Error != nil {
		h.t.Fatal(r.Error)
	}
	return r
}

// do asks another verb, which must not be refused.
func (h *house) do(verb string, q ops.AlwaysRequest) *ops.AlwaysResponse {
	h.t.Helper()
	q.V = schemas.Version
	r := h.always(verb, &q)
	if r.Error != nil {
		h.t.Fatalf("%s: %v", verb, r.Error)
	}
	return r
}

func (h *house) show(id string) *ops.AlwaysOnRecord {
	h.t.Helper()
	return h.do("alwaysShow", ops.AlwaysRequest{ID: id}).Record
}

// until waits, for two virtual minutes at most.
func (h *house) until(what string, done func() bool) {
	h.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("waited in vain until %s; the runs are %+v", what, h.runs("w"))
		}
	}
}

// runs of a workflow id in the order of their starts. A list is no moment: those that change meanwhile may stand there as they were.
func (h *house) runs(id string) []schemas.ExecutionInfo {
	h.t.Helper()
	seen := map[string]schemas.ExecutionInfo{}
	for x, err := range h.Client.List(h.t.Context(), drover.ListOptions{WorkflowID: id}) {
		if err != nil {
			h.t.Fatal(err)
		}
		seen[x.Run] = x
	}
	return slices.SortedFunc(maps.Values(seen), func(a, b schemas.ExecutionInfo) int {
		// At one moment the one that is open began last.
		return cmp.Or(cmp.Compare(a.StartedAt, b.StartedAt), cmp.Compare(uint64(a.ClosedAt)-1, uint64(b.ClosedAt)-1))
	})
}

// alone demands of the histories that no two runs were open at a time.
func (h *house) alone(id string) {
	h.t.Helper()
	var before schemas.ExecutionInfo
	var ended schemas.Timestamp
	for i, x := range h.runs(id) {
		if i > 0 && (ended == 0 || ended > x.StartedAt) {
			h.t.Errorf("run %s began at %v, before run %s had ended", x.Run, x.StartedAt, before.Run)
		}
		before, ended = x, 0
		for e, err := range h.Client.Run(id, x.Run).History(h.t.Context(), drover.HistoryOptions{}) {
			if err != nil {
				h.t.Fatal(err)
			}
			if _, closes := schemas.StatusOf(e.Type()); closes {
				ended = e.Time
			}
		}
	}
}

// open is a run that is open, or empty.
func (h *house) open(id string) string {
	h.t.Helper()
	for _, x := range h.runs(id) {
		if !x.Status.Closed() {
			return x.Run
		}
	}
	return ""
}

// another waits until a run is open that is not one of those.
func (h *house) another(id string, than ...string) (run string) {
	h.t.Helper()
	h.until("another run is open", func() bool {
		run = h.open(id)
		return run != "" && !slices.Contains(than, run)
	})
	return run
}

// noted counts operations of a kind.
func (h *house) noted(kind ops.OperationKind) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.notes {
		if o.Kind == kind {
			n++
		}
	}
	return n
}

func job(restart ops.RestartPolicy) ops.AlwaysOn {
	return ops.AlwaysOn{Start: schemas.StartRequest{WorkflowID: "w", Type: "job"}, Restart: restart}
}

var errCut = errors.New("the master was killed here")
