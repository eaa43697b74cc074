package writer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/env/envtest"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/partition/writer"
	"github.com/droverhq/drover/schemas"
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// fakeHost is a partition that notes what is committed.
type fakeHost struct {
	fence     uint64
	expired   bool // the claim
	held      []uint64
	committed []string
	failed    error
	then      func() // after each commit; nil: nothing
}

func (h *fakeHost) CanWrite() bool                  { return !h.expired }
func (h *fakeHost) Fence() uint64                   { return h.fence }
func (h *fakeHost) Fail(format string, args ...any) { h.failed = fmt.Errorf(format, args...) }

func (h *fakeHost) HoldEffects(sequence uint64) *watermark.Completion {
	h.held = append(h.held, sequence)
	return nil
}

func (h *fakeHost) Committed(r *actor.Run, c *actor.Commit) {
	h.committed = append(
		h.committed,
		fmt.Sprintf("%s %d-%d at %d", r.WorkflowID, c.First, r.Committed,
			c.Sequence),
	)
	if h.then != nil {
		h.then()
	}
}

// owned returns the writer of a new owner, whose fence is the first record of the history.
func owned(t *testing.T, o *envtest.Owner) (*writer.Writer, *fakeHost) {
	t.Helper()
	seq, err := o.Env.Conn.PublishSync(t.Context(), o.Env.NS.Fence(0), nil, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	h := &fakeHost{fence: seq}
	w := writer.New(h, o.Owner)
	if err := w.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	w.Follow(seq)
	return w, h
}

// started returns a run whose start is to be written.
func started(t *testing.T, o *envtest.Owner, w *writer.Writer, wid string) *actor.Run {
	t.Helper()
	r := &actor.Run{WorkflowID: wid, State: execution.New(wid, wid+"-1"), Unproved: true}
	happens(o, w, r, execution.Start{Request: &schemas.StartRequest{
		WorkflowID: wid, Run: wid + "-1", Type: "order",
	}})
	return r
}

func happens(o *envtest.Owner, w *writer.Writer, r *actor.Run, m execution.Message) {
	events, _ := r.State.Step(o.Env.Config(), m, o.Env.Now())
	w.Add(r, actor.Group{Events: events})
}

// Records go out with the sequences that follow the fence, many at a time, and each is committed
// once, in that order. What a run has gathered meanwhile is its next record.
func TestRecordsAreCommittedInOrder(t *testing.T) { // P-2
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		w, h := owned(t, o)
		var a *actor.Run
		o.Do(func() {
			a = started(t, o, w, "a")
			w.Write(a)
			w.Write(started(t, o, w, "b"))
			happens(o, w, a, execution.Signal{Name: "s"})
			happens(o, w, a, execution.Signal{Name: "t"})
			if !w.Busy() || len(h.committed) > 0 {
				t.Errorf("committed %v before anything was acknowledged", h.committed)
			}
		})
		o.Do(func() { w.Write(a) })
		want := "[a 1-2 at 2 b 1-2 at 3 a 3-4 at 4]"
		if got := fmt.Sprint(h.committed); got != want || h.failed != nil {
			t.Errorf("committed %s, %v; want %s", got, h.failed, want)
		}
		if got := fmt.Sprint(h.held); got != "[2 3 4]" {
			t.Errorf("effects were held at %s, want at each record", got)
		}
		if all := o.Stored(o.Env.NS.StreamHistory(0)); len(all) != 4 || w.Busy() {
			t.Errorf(
				"%d records are stored, want the fence and three; busy: %v",
				len(all),
				w.Busy(),
			)
		}
	})
}

// A record of somebody else, in the run's subject or elsewhere in the history, refuses the next
// one: the term ends, and nothing is committed.
func TestForeignRecordEndsTheTerm(t *testing.T) { // P-2
	for _, tc := range []struct{ name, wid string }{{"of the same run", "a"}, {"of another", "z"}} {
		t.Run(tc.name, func(t *testing.T) {
			envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
				w, h := owned(t, o)
				foreign := o.Env.NS.History(0, tc.wid, "other")
				if _, err := o.Env.Conn.PublishSync(t.Context(), foreign, nil, []byte("{}")); err != nil {
					t.Fatal(err)
				}
				o.Do(func() { w.Write(started(t, o, w, "a")) })
				if h.failed == nil || len(h.committed) > 0 {
					t.Errorf("committed %v, and the term ended by %v; want nothing, and a refusal",
						h.committed, h.failed)
				}
				if all := o.Stored(o.Env.NS.StreamHistory(0)); len(all) != 2 {
					t.Errorf("%d records are stored, want the fence and the foreign one", len(all))
				}
			})
		})
	}
}

// Without a claim nothing is sent, and what is pending stays.
func TestNothingIsWrittenWithoutClaim(t *testing.T) { // P-16
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		w, h := owned(t, o)
		h.expired = true
		o.Do(func() {
			r := started(t, o, w, "a")
			w.Write(r)
			if w.Busy() || len(r.Pending) != 1 {
				t.Errorf("a record is on its way: %v; %d groups are pending, want one", w.Busy(),
					len(r.Pending))
			}
		})
		if all := o.Stored(o.Env.NS.StreamHistory(0)); len(all) != 1 {
			t.Errorf("%d records are stored, want the fence alone", len(all))
		}
	})
}

// Groups that do not fit one message together become records of their own, in their order.
func TestLargeGroupsAreRecordsOfTheirOwn(t *testing.T) {
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		w, h := owned(t, o)
		var r *actor.Run
		o.Do(func() {
			r = started(t, o, w, "a")
			for range 3 {
				input := strings.Repeat("x", o.Env.BodyLimit()/3)
				events, _ := r.State.Step(o.Env.Config(), execution.Signal{
					Name: "s", Input: []byte(`"` + input + `"`),
				}, o.Env.Now())
				w.Add(r, actor.Group{Events: events, Size: len(input)})
			}
			w.Write(r)
		})
		for len(r.Pending) > 0 && h.failed == nil {
			o.Do(func() { w.Write(r) })
		}
		want := "[a 1-3 at 2 a 4-4 at 3 a 5-5 at 4]"
		if got := fmt.Sprint(h.committed); got != want || h.failed != nil {
			t.Errorf("committed %s, %v; want %s", got, h.failed, want)
		}
	})
}

// hear notes what Options.Changed hears.
func hear(o *envtest.Owner) *[]string {
	told := &[]string{}
	o.Env.Options.Changed = func(_ int, from, to uint64, changed []env.Change) {
		line := fmt.Sprintf("%d-%d", from, to)
		for _, c := range changed {
			line += fmt.Sprintf(" %s %s %d at %d", c.Line.WorkflowID, c.Line.Status, c.Line.Events,
				c.Sequence)
		}
		*told = append(*told, line)
	}
	return told
}

// Options.Changed hears of all acknowledged records without a gap, and how the runs stand after
// them. What a run has decided since is not told before it is in the history.
func TestChangedRunsAreToldOf(t *testing.T) {
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		told := hear(o)
		w, h := owned(t, o)
		var a *actor.Run
		o.Do(func() {
			a = started(t, o, w, "a")
			w.Write(a)
			w.Write(started(t, o, w, "b"))
			happens(o, w, a, execution.Terminate{Request: &schemas.ExecutionRequest{
				WorkflowID: "a", Run: "a-1",
			}})
		})
		o.Do(func() { w.Write(a) })
		want := "[1-3 a open 2 at 2 b open 2 at 3 4-4 a terminated 3 at 4]"
		if got := fmt.Sprint(*told); got != want || h.failed != nil {
			t.Errorf("told %s, %v; want %s", got, h.failed, want)
		}
	})
}

// A run that has several records among those that are told of at once is told of with the last.
func TestRunIsToldOfOnce(t *testing.T) {
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		told := hear(o)
		w, h := owned(t, o)
		var a *actor.Run
		h.then = func() {
			if a.Committed < 4 {
				happens(o, w, a, execution.Signal{Name: "s"})
				w.Write(a)
			}
		}
		o.Do(func() {
			a = started(t, o, w, "a")
			w.Write(a)
		})
		if got, want := fmt.Sprint(*told), "[1-4 a open 4 at 4]"; got != want || h.failed != nil {
			t.Errorf("told %s, %v; want %s", got, h.failed, want)
		}
	})
}

// A history with a limit takes no new run above nine tenths of it; what starts that are begun will
// take counts, until they are sent.
func TestRoomOfALimitedHistory(t *testing.T) {
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		limit(t, o, 100_000)
		w, _ := owned(t, o)
		o.Do(w.CheckQuota)
		o.Do(func() {
			if w.Full() || !w.Limited() || w.FullWith(1000) || !w.FullWith(95_000) {
				t.Errorf("full: %v, limited: %v, with 1,000 bytes: %v, with 95,000: %v",
					w.Full(), w.Limited(), w.FullWith(1000), w.FullWith(95_000))
			}
			w.Promise(95_000)
			if refusal := w.Refusal(); !w.Full() || refusal.Field != "maxBytes" ||
				refusal.Hint == "" {
				t.Errorf("full: %v, refused with %v", w.Full(), refusal)
			}
			if w.Flushed(); w.Full() {
				t.Error("what is sent is still promised")
			}
		})
	})
}

// limit bounds the bytes of the history.
func limit(t *testing.T, o *envtest.Owner, bytes int64) {
	t.Helper()
	js := o.Env.Reads.JetStream()
	s, err := js.Stream(t.Context(), o.Env.NS.StreamHistory(0))
	if err != nil {
		t.Fatal(err)
	}
	c := s.CachedInfo().Config
	c.MaxBytes = bytes
	if _, err := js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}
