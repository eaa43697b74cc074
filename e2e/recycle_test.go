package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/e2e/load"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// Three servers beside one NATS restart their roles under load, one after the other: it is announced before, no call fails, nothing is
// lost or done twice, no slot of a schedule is missed, and the processes are the same (S2-2, S2-4, S2-10, S2-14).
func TestS2_04Recycle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.bareNATS()
	names := []string{"one", "two", "three"}
	var fleet []*process
	for _, name := range names {
		fleet = append(fleet, w.beside(name, "broker,timers,ops,flows", "--partitions", fmt.Sprint(partitions)))
	}
	w.role("decider", load.Type)
	w.role("worker", load.List)
	var mu sync.Mutex
	var heard []ops.RecycleNotice
	if _, err := w.plain().Subscribe(namespace.NoticeRecycle(), func(m *nats.Msg) {
		var n ops.RecycleNotice
		if err := json.Unmarshal(m.Data, &n); err != nil {
			t.Errorf("%s: %v", m.Data, err)
		}
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, n)
	}); err != nil {
		t.Fatal(err)
	}
	shown := func() *ops.RecycleResponse {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		r, err := w.client.ShowRecycle(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	poll.Until(t, patience, "three nodes", func() bool { return len(shown().Nodes) == 3 })
	before := shown()
	first := everySecond(w)
	f := newTraffic(w, partitions, 100*time.Millisecond, load.Input{Steps: 2}, load.Input{Steps: 1, Timer: 200})
	for _, args := range [][]string{
		{"recycle", "set", "--at", time.Now().UTC().Add(12 * time.Hour).Format("15:04"), "--stagger", "1s"}, // not within its notice
		{"recycle", "now", "--notice", "1s", "--wait", "--timeout", patience.String()},
	} {
		if r := runDrover(t, w.url, args...); r.Code != 0 {
			t.Fatalf("%v: %+v", args, r)
		}
	}
	after := shown()
	for i, n := range after.Nodes {
		if n.Node != before.Nodes[i].Node || n.Since <= before.Nodes[i].Since || n.Since < after.Latest.Slot {
			t.Errorf("node %s runs since %v, before it was %v", n.Node, n.Since.Time(), before.Nodes[i].Since.Time())
		}
	}
	wantEverySecond(w, first)
	f.finish()
	slow, _ := f.slowest(time.Time{}, time.Now())
	t.Logf("slowest call: %v (%s)", slow.took.Round(time.Millisecond), slow.verb)
	w.wantNodes("one ready", "three ready", "two ready")
	for _, p := range fleet {
		p.Alive()
	}
	poll.Until(t, patience, "all notices are heard", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(heard) >= 8
	})
	mu.Lock()
	defer mu.Unlock()
	var words, turns []string
	for _, n := range heard {
		if words = append(words, strings.TrimSpace(n.Node+" "+string(n.Phase))); n.Phase == ops.RecycleDraining {
			turns = append(turns, n.Node)
		}
	}
	want := []string{"announced"}
	for _, node := range turns {
		want = append(want, node+" draining", node+" returned")
	}
	if want = append(want, "finished"); !slices.Equal(words, want) || len(turns) != 3 {
		t.Errorf("heard %v", words)
	} else if heard[1].At < heard[0].At {
		t.Errorf("the first turn began at %v, before the %v that was announced", heard[1].At.Time(), heard[0].At.Time())
	}
}

// everySecond makes a schedule that starts a workflow each second, and returns its first slot.
func everySecond(w *world) time.Time {
	w.t.Helper()
	made, err := w.client.CreateSchedule(w.t.Context(), ops.Schedule{
		ID:    "second",
		Times: &ops.ScheduleTimes{Every: []ops.ScheduleInterval{{Every: schemas.Seconds(1)}}},
		Action: ops.ScheduleAction{Start: &schemas.StartRequest{
			Type: load.Type, Input: schemas.Text(`{"steps":1}`), ActivityDefaults: &schemas.ActivityDefaults{List: load.List},
		}},
		Overlap: ops.OverlapAllow,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	// Not the next time that the answer tells: on a busy machine that may be the second slot.
	return made.Record.Since.Time().Truncate(time.Second).Add(time.Second)
}

// wantEverySecond expects that each slot so far was started, and none left out.
func wantEverySecond(w *world, first time.Time) {
	w.t.Helper()
	var s *ops.ScheduleState
	poll.Until(w.t, patience, "no slot is under way", func() bool {
		a, err := w.client.ShowSchedule(w.t.Context(), "second", 0)
		if err != nil {
			w.t.Fatal(err)
		}
		s = a.State
		return s.Starting == nil
	})
	slots := int64(s.LastSlot.Time().Sub(first)/time.Second) + 1
	if c := s.Counts; c.Started != slots || c.Skipped+c.Missed+c.Overrun+c.Refused+c.Failed != 0 {
		w.t.Errorf("of %d slots %d were started: %+v", slots, c.Started, c)
	}
}
