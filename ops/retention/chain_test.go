package retention_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/retention"
	"github.com/droverhq/drover/ops/audit"
	ops "github.com/droverhq/drover/ops/retention"
	"github.com/droverhq/drover/schemas"
)

// runs counts the runs of a workflow id.
func (h *house) runs(id string) (n int) {
	h.t.Helper()
	o := natsconn.ReadOptions{FilterSubjects: []string{ns.HistoryOfWorkflow(0, id)}, HeadersOnly: true, LastPerSubject: true}
	if err := natsconn.Of(h.Client).Scan(h.t.Context(), ns.StreamHistory(0), o, func(natsconn.Stored) error { n++; return nil }); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// The runs of a chain that have continued are judged among themselves, whether it goes on or not, and the last of them takes
// along what is left.
func TestChain(t *testing.T) {
	live(t, ops.Options{}, func(h *house) {
		first := h.run("raw", "c", says{Retention: []string{"2"}, Again: 6})
		h.settle()
		h.pass()
		if n := h.runs("c"); n != 3 {
			h.t.Errorf("got %d runs, want the last of the chain and two before it", n)
		}
		if first == "" || h.explain("c", "").Rank != 1 {
			h.t.Errorf("the last is %+v", h.explain("c", ""))
		}
		for _, id := range []string{"d", "e"} {
			h.run("raw", id, says{Retention: []string{"2"}})
		}
		h.settle()
		h.pass()
		h.wantKept("d e")
	})
}

// What a request that fails has left of a chain goes with the next pass of the same janitor.
func TestChainLaterAFailure(t *testing.T) {
	fails := false
	live(t, ops.Options{Before: func(string, string) error {
		if fails {
			return errCut
		}
		return nil
	}}, func(h *house) {
		h.run("raw", "c", says{Retention: []string{"3"}, Again: 3})
		for _, id := range []string{"d", "e", "f"} {
			h.run("raw", id, says{Retention: []string{"3"}})
		}
		h.settle()
		fails = true
		if _, err := h.j.Pass(h.t.Context()); !errors.Is(err, errCut) {
			h.t.Fatalf("got %v, want %v", err, errCut)
		}
		h.wantKept("c d e f")
		fails = false
		if r := h.pass(); r.Waiting != 0 || r.Purged != 4 {
			h.t.Errorf("got %+v, want that four runs go", r)
		}
		h.wantKept("d e f")
	})
}

// A workflow id whose runs are purged is free: a start with the request id of a purged run begins a new one, and until then it is
// answered with the run that it began.
func TestStartAgain(t *testing.T) {
	live(t, ops.Options{Default: "0"}, func(h *house) {
		again := func() string {
			r, err := h.Client.Start(h.t.Context(), "raw", says{}, &drover.StartOptions{ID: "a", RequestID: "q"})
			if err != nil {
				h.t.Fatal(err)
			}
			h.Wait(r)
			return r.RunID
		}
		first := again()
		h.run("other", "witness-x", says{Retention: []string{"forever"}})
		time.Sleep(90 * time.Second)
		if r := h.pass(); r.Purged != 0 || again() != first {
			h.t.Errorf("a start that is repeated within the grace finds another run; %+v", r)
		}
		h.settle()
		h.pass()
		h.wantKept("")
		var e *drover.Error
		h.Restart(time.Second) // the owner remembers what it has in memory
		if _, err := h.Client.Run("a", "").Describe(h.t.Context()); !errors.As(err, &e) || e.Code != schemas.CodeNotFound {
			h.t.Errorf("a purged run is described: %v", err)
		}
		before := schemas.At(time.Now())
		again()
		if d, err := h.Client.Run("a", "").Describe(h.t.Context()); err != nil || d.Execution.StartedAt < before {
			h.t.Errorf("a start long after its run was purged: got %+v, %v", d, err)
		}
	})
}

// P-14: a history stays as long as a checkpoint lies before it, and until another record is the witness of the end.
func TestP14WaitsForTheWitnessAndTheLogs(t *testing.T) {
	live(t, ops.Options{Default: "0"}, func(h *house) {
		r := h.start("raw", "a", says{Stay: true})
		if err := r.Signal(h.t.Context(), "go", nil); err != nil {
			h.t.Fatal(err)
		}
		h.Wait(r)
		h.pass()
		for _, step := range []struct {
			after time.Duration
			why   string
			then  func()
		}{
			{time.Second, "stays for 2m in any case", func() {}},
			{10 * time.Minute, "the witness of where the history ends", func() { h.run("other", "witness-1", says{Retention: []string{"forever"}}) }},
			{time.Minute, "message 1 of the signals, which is for its workflow id and was read", h.settle},
		} {
			time.Sleep(step.after)
			if r := h.pass(); r.Purged != 0 || r.Waiting != 1 {
				h.t.Errorf("%s: got %+v", step.why, r)
			}
			if a := h.explain("a", ""); !a.Goes || !strings.Contains(a.Because, step.why) {
				h.t.Errorf("got %+v, want %q", a, step.why)
			}
			step.then()
		}
		h.wantKept("a")
		h.pass()
		h.wantKept("")
	})
}

// P-14: a closed run stays until its owner has written down that its effects are done, and a child until its parent has closed and the same holds
// for that: till then either may be repeated, by whoever reads the histories.
func TestP14WaitsForTheEffects(t *testing.T) {
	live(t, ops.Options{Default: "0"}, func(h *house) {
		h.run("raw", "parent", says{Retention: []string{"forever"}, Child: &says{Retention: []string{"0"}}, ChildID: "child"})
		h.settle()
		ctx, conn := h.t.Context(), natsconn.Of(h.Client)
		last, err := conn.LastBySubject(ctx, ns.StreamHistory(0), ns.History(0, "child", h.explain("child", "").Run))
		if err != nil {
			h.t.Fatal(err)
		}
		stays := func(effects uint64, why string) {
			h.t.Helper()
			h.checkpoint(effects)
			if r := h.pass(); r.Purged != 0 || r.Waiting != 1 {
				h.t.Errorf("%s: got %+v", why, r)
			}
			if a := h.explain("child", ""); !a.Goes || !strings.Contains(a.Because, why) {
				h.t.Errorf("got %+v, want %q", a, why)
			}
		}
		stays(last.Seq-1, "the owner of partition 0 has not written down yet")
		stays(last.Seq, "the owner of its parent")
		// The history has lost its end since the parent was seen to close, and it goes on.
		parent := ns.History(0, "parent", h.explain("parent", "").Run)
		seq, err := conn.PublishSync(ctx, parent, natsconn.Header{schemas.StatusHeader: {string(schemas.StatusOpen)}}, nil)
		if err != nil {
			h.t.Fatal(err)
		}
		stays(seq, "its parent")
		if err := conn.PurgeSubject(ctx, ns.StreamHistory(0), parent); err != nil {
			h.t.Fatal(err)
		}
		h.pass()
		h.wantKept("")
	})
}

// position is the checkpoint of the partition.
func (h *house) position() (c schemas.Checkpoint) {
	h.t.Helper()
	value, _, err := natsconn.Of(h.Client).KVGet(h.t.Context(), ns.BucketCheckpoints(), "partition.0")
	if err == nil {
		err = schemas.Unmarshal(value, &c)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// checkpoint changes how far the effects are done by the checkpoint of the partition.
func (h *house) checkpoint(effects uint64) {
	h.t.Helper()
	ctx, conn := h.t.Context(), natsconn.Of(h.Client)
	value, rev, err := conn.KVGet(ctx, ns.BucketCheckpoints(), "partition.0")
	if err != nil {
		h.t.Fatal(err)
	}
	var c schemas.Checkpoint
	if err := schemas.Unmarshal(value, &c); err != nil {
		h.t.Fatal(err)
	}
	c.Effects = effects
	body, err := schemas.Marshal(&c)
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := conn.KVUpdate(ctx, ns.BucketCheckpoints(), "partition.0", body, rev, 0); err != nil {
		h.t.Fatal(err)
	}
}

var errCut = errors.New("cut here")

// P-14: a janitor that dies before any of its requests leaves whole runs, and the next one goes on.
func TestP14CrashAtEveryPurge(t *testing.T) {
	for _, cut := range cuts(t, 6) {
		t.Run(strconv.Itoa(cut), func(t *testing.T) {
			live(t, ops.Options{FlowDefault: "0", Default: "0"}, func(h *house) {
				h.run("raw", "chain", says{Again: 2})
				h.run("raw", "parent", says{Child: &says{}, ChildID: "child"})
				for i := range 3 {
					h.run("flow", "f"+strconv.Itoa(i), says{})
				}
				h.settle()
				n := 0
				h.o.Before = func(string, string) error {
					if n++; n > cut {
						return errCut
					}
					return nil
				}
				h.another()
				if _, err := h.j.Pass(h.t.Context()); !errors.Is(err, errCut) {
					h.t.Fatalf("got %v, want the cut", err)
				}
				h.whole()
				h.o.Before = nil
				h.another()
				h.Crash(time.Second) // the owner loses its memory too, and begins anew from what is there
				h.another()
				h.settle()
				h.pass()
				h.pass()
				h.wantKept("")
			})
		})
	}
}

// What is purged is missed by nobody: neither by the audit, which looks at what is open and what was asked of others, nor by the
// rules of histories, which every test here ends with.
func TestAuditIsSilent(t *testing.T) {
	live(t, ops.Options{Default: "0"}, func(h *house) {
		h.run("raw", "parent", says{Child: &says{}, ChildID: "child"})
		h.run("raw", "chain", says{Again: 3})
		open := h.start("raw", "open", says{Child: &says{Stay: true}, ChildID: "open-child", Stay: true})
		h.settle()
		if r := h.pass(); r.Purged == 0 {
			h.t.Fatalf("nothing is purged: %+v", r)
		}
		h.wantKept("open open-child")
		c, err := claims.Open(natsconn.Of(h.Client), ns.BucketClaims(), claims.Options{Node: "audit"})
		if err != nil {
			h.t.Fatal(err)
		}
		a, err := audit.New(audit.Options{Conn: natsconn.Of(h.Client), Namespace: ns, Partitions: 1, Claims: c, ReportOnly: true})
		if err != nil {
			h.t.Fatal(err)
		}
		r, err := a.Pass(h.t.Context(), true)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, f := range r.Findings {
			if f.Severity == audit.Fault {
				h.t.Errorf("the audit finds %+v", f)
			}
		}
		if why, err := open.Why(h.t.Context()); err != nil || !strings.Contains(why, "open-child") {
			h.t.Errorf("got %q, %v", why, err)
		}
	})
}

// A0-15: a run whose retention is disabled is never replayed, also not while it is still there.
func TestA015DisabledIsNotReplayed(t *testing.T) {
	live(t, ops.Options{}, func(h *house) {
		for _, id := range []string{"off", "on"} {
			says := says{Retention: []string{map[string]string{"off": "disabled", "on": "5"}[id]}}
			h.run("raw", id, says)
		}
		for _, o := range []*drover.ReplayOptions{{}, {Force: true}} {
			if _, err := h.Client.Run("off", "").Replay(h.t.Context(), o); !errors.Is(err, drover.ErrConflict) || !strings.Contains(err.Error(), "is disabled") {
				h.t.Errorf("got %v, want a conflict", err)
			}
		}
		if _, err := h.Client.Run("on", "").Replay(h.t.Context(), &drover.ReplayOptions{From: "start"}); err != nil && strings.Contains(err.Error(), "disabled") {
			h.t.Errorf("a run that is kept is refused: %v", err)
		}
	})
}

// whole fails if a run has lost a part.
func (h *house) whole() {
	h.t.Helper()
	next := map[string]int64{}
	err := natsconn.Of(h.Client).Scan(h.t.Context(), ns.StreamHistory(0), natsconn.ReadOptions{FilterSubjects: []string{ns.AllRuns(0)}}, func(s natsconn.Stored) error {
		var r schemas.Record
		if err := schemas.Unmarshal(s.Data, &r); err != nil {
			return err
		}
		if want := next[s.Subject] + 1; r.First != want {
			h.t.Errorf("%s begins with event %d, want %d", s.Subject, r.First, want)
		}
		next[s.Subject] = r.Last()
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// Many runs that lie together go with one request; the fence and what is kept stay.
func TestPurgeBySequence(t *testing.T) {
	live(t, ops.Options{FlowDefault: "2", Default: "1h"}, func(h *house) {
		for i := range 30 {
			h.run("flow", "f"+strconv.Itoa(i), says{})
		}
		h.settle()
		h.Restart(time.Second) // a second fence, after which the first may go
		h.settle()
		var asked []string
		h.o.Before = func(_, what string) error {
			asked = append(asked, what)
			return nil
		}
		h.another()
		if r := h.pass(); r.Purged != 28 {
			h.t.Errorf("got %+v, want 28 purged", r)
		}
		if len(asked) != 1 || !strings.HasPrefix(asked[0], "below ") {
			h.t.Errorf("asked for %v, want one purge by sequence", asked)
		}
		h.wantKept("f28 f29")
		h.run("flow", "f30", says{}) // the owner has not lost its place
		if _, err := natsconn.Of(h.Client).LastBySubject(h.t.Context(), ns.StreamHistory(0), ns.Fence(0)); err != nil {
			h.t.Error(err)
		}
	})
}

// The last fence, which is the owner's, stays although all around it goes.
func TestLastFenceStays(t *testing.T) {
	live(t, ops.Options{FlowDefault: "0"}, func(h *house) {
		fence := func() uint64 {
			m, err := natsconn.Of(h.Client).LastBySubject(h.t.Context(), ns.StreamHistory(0), ns.Fence(0))
			if err != nil {
				h.t.Fatal(err)
			}
			return m.Seq
		}
		for i := range 20 {
			h.run("flow", "f"+strconv.Itoa(i), says{})
		}
		h.settle()
		before := fence()
		if r := h.pass(); r.Purged != 20 {
			h.t.Errorf("got %+v, want 20 purged", r)
		}
		if after := fence(); after != before {
			h.t.Errorf("the fence is message %d, want %d", after, before)
		}
	})
}

// The answers are those of the verb, to whoever has no rights to a stream.
func TestExplain(t *testing.T) {
	live(t, ops.Options{Every: time.Second}, func(h *house) {
		h.start("flow", "open", says{Stay: true})
		for _, id := range []string{"1", "2", "3", "4"} {
			h.run("flow", id, says{})
		}
		h.run("raw", "raw", says{})
		h.run("raw", "hash", says{Retention: []string{"max(2, 1h)"}, Hash: "g h"})
		if a := h.explain("1", ""); !a.Goes || !strings.Contains(a.Because, "beyond 3. It is still there: a closed run stays for 2m") {
			h.t.Errorf("before any pass: got %+v", a)
		}
		ctx, stop := context.WithCancel(h.t.Context())
		defer stop()
		go func() {
			if err := h.j.Run(ctx); err != nil {
				h.t.Error(err)
			}
		}()
		time.Sleep(10 * time.Second)
		for _, tt := range []struct{ id, because, group, expression, source string }{
			{"open", "never: it is open", "", "", ""},
			{"4", "Kept: It is the most recent of 3 in its group", `runs of type "flow"`, "3 hard", "the default of the namespace for flows"},
			{"1", "it is to go, and is still there: a closed run stays for 2m", "", "", ""},
			{"raw", "it goes after 2000-01-08T00:00:00Z", `runs of type "raw"`, "7d soft 0", "the default of the namespace"},
			{"hash", "within the last 2", `runs with hash "g h"`, `max(2, 1h) soft 3 hash "g h"`, "what runs of the group say"},
		} {
			a, err := h.Client.Run(tt.id, "").Retention(h.t.Context())
			if err != nil {
				h.t.Errorf("%s: %v", tt.id, err)
				continue
			}
			if !strings.Contains(a.Because, tt.because) || a.Group != tt.group || a.Expression != tt.expression || a.Source != tt.source {
				h.t.Errorf("%s: got %+v", tt.id, a)
			}
		}
		h.settle()
		h.wantKept("1 2 3 4 hash open raw") // it only looks in the beginning
		time.Sleep(3 * time.Minute)
		h.wantKept("2 3 4 hash open raw")
		if _, err := h.Client.Run("nobody", "").Retention(h.t.Context()); !errors.Is(err, drover.ErrNotFound) {
			h.t.Errorf("got %v, want not found", err)
		}
	})
}

func TestOptions(t *testing.T) {
	good := ops.Options{Conn: &natsconn.Conn{}, Namespace: "default", Partitions: 1}
	if _, err := ops.New(good); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*ops.Options){
		"Conn is nil":          func(o *ops.Options) { o.Conn = nil },
		"Partitions is 0":      func(o *ops.Options) { o.Partitions = 0 },
		"Grace is 1s":          func(o *ops.Options) { o.Grace = time.Second },
		"Every is 1ms":         func(o *ops.Options) { o.Every = time.Millisecond },
		"SweepEvery is 1m":     func(o *ops.Options) { o.SweepEvery = time.Minute },
		"Rate is -1":           func(o *ops.Options) { o.Rate = -1 },
		"Namespace":            func(o *ops.Options) { o.Namespace = subject.Namespace("a.b") },
		`Default: retention "`: func(o *ops.Options) { o.Default = "any(1)" },
		"cannot be disabled":   func(o *ops.Options) { o.FlowDefault = "disabled" },
	} {
		o := good
		change(&o)
		if _, err := ops.New(o); !errors.Is(err, ops.ErrInvalidOptions) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for _, text := range []string{ops.FlowDefault, ops.Default} {
		if _, err := retention.ParseDefault(text); err != nil {
			t.Error(err)
		}
	}
}
