package retention_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/runs"
	ops "github.com/droverhq/drover/ops/retention"
	"github.com/droverhq/drover/schemas"
	words "github.com/droverhq/drover/schemas/ops"
)

// records are what an owner would tell of the records from a sequence on.
func (h *house) records(from uint64) (closed []broker.Change, to uint64) {
	h.t.Helper()
	to = from - 1
	err := natsconn.Of(h.Client).Scan(context.Background(), ns.StreamHistory(0), natsconn.ReadOptions{StartSeq: from, HeadersOnly: true}, func(s natsconn.Stored) error {
		to = s.Seq
		if !schemas.HeaderStatus(s.Header.Get(schemas.StatusHeader)).Closed() {
			return nil
		}
		l, err := runs.ReadLine(s)
		l.ClosedAt = schemas.At(s.Time.Add(-3 * time.Millisecond)) // the event is older than the record
		closed = append(closed, broker.Change{Sequence: s.Seq, Line: l})
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return closed, to
}

// What is told is not read: whoever keeps a run back is believed. What is not told is read.
func TestWhatIsToldIsNotRead(t *testing.T) { // P-14
	live(t, ops.Options{}, func(h *house) {
		h.j.Listen()
		h.run("raw", "read", says{})
		first, to := h.records(1)
		h.run("raw", "kept back", says{})
		_, end := h.records(to + 1)
		h.j.Changed(0, to+1, end, nil)
		if got := h.pass().Kept; got != 1 {
			t.Errorf("the janitor knows of %d closed runs, want only the one that was read", got)
		}
		time.Sleep(time.Second)
		h.run("raw", "told", says{})
		closed, last := h.records(end + 1)
		h.j.Changed(0, end+1, last, closed)
		if len(first) != 1 || len(closed) != 1 {
			t.Fatalf("got %d and %d runs that have closed, want one each", len(first), len(closed))
		}
		if got := h.pass().Kept; got != 2 {
			t.Errorf("the janitor knows of %d closed runs, want the first and the last of three", got)
		}
		if a := h.explain("told", ""); a.Group == "" {
			t.Errorf("got %+v, want a run that is in a group", a)
		}
		time.Sleep(time.Second)
		h.run("raw", "late", says{})
		all, after := h.records(1)
		h.j.Changed(0, 1, after, all) // most of which is known
		if got := h.pass().Kept; got != 3 {
			t.Errorf("the janitor knows of %d closed runs, want one more", got)
		}
		h.another() // which was told of nothing
		if got := h.pass().Kept; got != 4 {
			t.Errorf("another janitor knows of %d closed runs, want all four", got)
		}
	})
}

// Whatever an owner tells, in whichever pieces, however late, twice, or not at all: what is purged, and what is kept, is as if everything had been read.
func TestToldOrRead(t *testing.T) { // P-14
	for seed := range *games {
		chains := seed%2 == 1 // of which the model knows nothing
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			live(t, ops.Options{FlowDefault: "2", Default: "min(3, 90m)"}, func(h *house) {
				g := &game{house: h, dice: rand.New(rand.NewPCG(seed, 11)), open: map[string]bool{}}
				told := uint64(1) // of the first record that nothing was told of
				h.j.Listen()
				for range 40 {
					g.n++
					id := fmt.Sprint("w", g.n)
					g.run([]string{"flow", "raw"}[g.dice.IntN(2)], id, says{Again: map[bool]int{true: g.dice.IntN(3)}[chains]})
					closed, to := h.records(told)
					switch from := told; g.dice.IntN(6) {
					case 0: // not now
					case 1: // never
						told = to + 1
					case 2: // twice
						h.j.Changed(0, from, to, closed)
						h.j.Changed(0, from, to, closed)
						told = to + 1
					case 3: // record by record
						for seq := from; seq <= to; seq++ {
							var one []broker.Change
							if len(closed) > 0 && closed[0].Sequence == seq {
								one, closed = closed[:1], closed[1:]
							}
							h.j.Changed(0, seq, seq, one)
						}
						told = to + 1
					default:
						h.j.Changed(0, from, to, closed)
						told = to + 1
					}
					if g.dice.IntN(4) == 0 {
						time.Sleep(time.Duration(g.dice.IntN(30)) * time.Minute)
						h.pass()
					}
				}
				h.settle()
				got := h.pass()
				kept := h.kept()
				h.another()
				if want := h.pass(); want.Kept != got.Kept || want.Waiting != got.Waiting || want.Blocked != got.Blocked || want.Purged > 0 {
					t.Errorf("got %+v, one that has read everything says %+v", got, want)
				}
				if want := g.model(); !chains && kept != want {
					t.Errorf("kept %q, want %q", kept, want)
				}
				h.whole()
			})
		})
	}
}

// A run is purged only if the record in that place is its own, whatever was told; and what is gone by now is not waited for.
func TestToldOfAnotherRun(t *testing.T) { // P-14
	live(t, ops.Options{}, func(h *house) {
		h.run("raw", "gone", says{Retention: []string{"disabled"}})
		closed, before := h.records(1)
		ghost := closed[0]
		h.settle()
		h.pass()
		h.wantKept("")
		h.run("raw", "stays", says{Retention: []string{"forever"}})
		closed, to := h.records(before + 1)
		h.another()
		h.j.Listen()
		ghost.Sequence = closed[len(closed)-1].Sequence
		closed[len(closed)-1] = ghost
		h.j.Changed(0, before+1, to, closed)
		h.settle()
		if got := h.pass(); got.Purged > 0 || got.Waiting > 0 {
			t.Errorf("got %+v, want nothing purged, and nothing that is to go", got)
		}
		h.wantKept("stays")
	})
}

// After a crash of the server, which may have lost what was told, everything is read anew.
func TestToldBeforeACrash(t *testing.T) { // P-9
	live(t, ops.Options{}, func(h *house) {
		h.j.Listen()
		h.run("raw", "before", says{})
		h.pass()
		_, last := h.records(1)
		h.j.Changed(0, last+2, last+30, nil) // and lost
		h.Crash(time.Second)
		for i := range 10 {
			h.run("raw", fmt.Sprint("after", i), says{})
		}
		if _, now := h.records(1); now < last+10 {
			t.Fatalf("got %d records after %d, want some where the lost ones were", now, last)
		}
		if got := h.pass().Kept; got != 11 {
			t.Errorf("the janitor knows of %d closed runs, want 11", got)
		}
	})
}

// Of a run that was told of, too, it is known what it waits for.
func TestToldLaterAnOpenRun(t *testing.T) {
	live(t, ops.Options{}, func(h *house) {
		h.j.Listen()
		h.start("raw", "up", says{Child: &says{}, ChildID: "down", Stay: true})
		h.Await("up", schemas.EventChildSuccess)
		closed, to := h.records(1)
		h.j.Changed(0, 1, to, closed)
		if a := h.explain("down", ""); len(closed) != 1 || !strings.HasPrefix(a.Because, "never while run") {
			t.Errorf("got %q of %d runs, want that it stays while its parent is open", a.Because, len(closed))
		}
	})
}

// Where little was not told of, little is asked for, whatever stands after it; and what is missing there is not waited for.
func TestLittleIsReadOfAGap(t *testing.T) { // P-14
	live(t, ops.Options{}, func(h *house) {
		for i := range 60 {
			h.run("raw", fmt.Sprint("w", i), says{})
		}
		closed, end := h.records(1)
		conn, stream := natsconn.Of(h.Client), ns.StreamHistory(0)
		if end < 61 || len(closed) != 60 {
			t.Fatalf("got %d records, %d of which close a run; want a fence, and the end of each run", end, len(closed))
		}
		for _, tc := range []struct {
			gap     uint64 // records that nobody tells of
			purged  []string
			scanned bool
		}{
			{gap: 1},
			{gap: 10},
			{gap: 16},
			{gap: 17, scanned: true},
			{gap: 10, purged: []string{"w1"}},
			{gap: 10, purged: []string{"w3", "w4", "w8"}},
			{gap: 10, purged: []string{"w0", "w2", "w5", "w6", "w7"}},
			{gap: 17, purged: []string{"w9", "w10", "w11", "w12", "w13", "w14", "w15", "w16"}, scanned: true},
		} {
			for _, id := range tc.purged {
				if err := conn.PurgeSubject(h.t.Context(), stream, ns.HistoryOfWorkflow(0, id)); err != nil {
					t.Fatal(err)
				}
			}
			closed, _ = h.records(1) // those that are left
			h.another()
			h.j.Listen()
			told := closed[sort.Search(len(closed), func(i int) bool { return closed[i].Sequence > tc.gap }):]
			h.j.Changed(0, tc.gap+1, end, slices.Clone(told))
			before := conn.NATS().Stats().InMsgs
			if got := h.pass().Kept; got != len(closed) {
				t.Errorf("%+v: the janitor knows of %d closed runs, want %d", tc, got, len(closed))
			}
			if got := conn.NATS().Stats().InMsgs - before; !tc.scanned && got > tc.gap+10 {
				t.Errorf("%+v: it was sent %d messages; want one for each record of the gap, and some for the pass", tc, got)
			}
		}
	})
}

// A janitor that runs hears of many runs before its next pass, although nobody has told of the records before them.
func TestManyAreHeardAtOnce(t *testing.T) {
	live(t, ops.Options{Every: time.Hour, Delay: time.Hour}, func(h *house) {
		ctx, cancel := context.WithCancel(h.t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := h.j.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		defer func() { cancel(); running.Wait() }()
		time.Sleep(time.Second) // its first pass is over
		_, before := h.records(1)
		h.run("raw", "w", says{})
		closed, to := h.records(before + 1)
		many := make([]broker.Change, 0, 2000)
		for i := range 2000 { // as if the records after were there
			c := closed[0]
			c.Sequence = to + 1 + uint64(i)
			c.Line.Run = fmt.Sprint("R", i)
			many = append(many, c)
		}
		h.j.Changed(0, to+1, to+2000, many)
		time.Sleep(time.Second)
		if got := h.j.Known(); got != 2001 {
			t.Errorf("the janitor knows of %d closed runs, want 2,000 that it was told of, and one that it has read", got)
		}
	})
}

// Of each run that is purged the indexes are told.
func TestPurgedIsTold(t *testing.T) {
	live(t, ops.Options{}, func(h *house) {
		var mu sync.Mutex
		told := map[string]uint64{}
		sub, err := natsconn.Of(h.Client).Subscribe(ns.AllPurged(), "", func(m natsconn.Msg) {
			var gone words.PurgedRun
			if err := schemas.Unmarshal(m.Data, &gone); err != nil {
				h.t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			told[gone.WorkflowID+" "+gone.Run] = gone.Sequence
		})
		if err != nil {
			h.t.Fatal(err)
		}
		defer sub.Close()
		run := h.run("raw", "gone", says{Retention: []string{"disabled"}})
		h.run("raw", "stays", says{})
		closed, _ := h.records(1)
		h.settle()
		h.pass()
		h.wantKept("stays")
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(told) != 1 || told["gone "+run] != closed[0].Sequence {
			h.t.Errorf("got %v, want the run that was purged, with its last record", told)
		}
	})
}
