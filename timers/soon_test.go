package timers_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/schemas"
)

// hint is what the owner was told of, and when.
type hint struct {
	wids []string
	at   time.Time
}

// hints hears what the owner is told of before it is due.
func (r *rig) hints() <-chan hint {
	r.t.Helper()
	all := make(chan hint, 100)
	_, err := r.conn.Subscribe(ns.Ring(0), "", func(m post.Msg) {
		q := &schemas.Rings{}
		if err := schemas.Unmarshal(m.Data, q); err != nil {
			r.t.Errorf("got %q (%v), want rings", m.Data, err)
		}
		if len(q.Soon) > 0 {
			if m.Reply != "" || len(q.Rings) > 0 {
				r.t.Errorf("got a hint that wants the answer %q, with %d rings; want a hint alone", m.Reply, len(q.Rings))
			}
			all <- hint{q.Soon, time.Now()}
		}
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// The owner is told of a burst of alarms shortly before the first one is due, once, and only if nothing was due for a while. None of them
// rings early.
func TestOwnerIsToldOfABurst(t *testing.T) { // P-15
	const lead = 300 * time.Millisecond
	for _, tc := range []struct {
		name   string
		n      int
		apart  time.Duration
		behind time.Duration // how long behind another alarm; 0: there is none
		want   int           // of how many the owner is told
	}{
		{"burst", 300, time.Millisecond, 0, 256},
		{"all at once", 300, 0, 0, 256},
		{"small burst", 40, 9 * time.Millisecond, 0, 34},
		{"trickle", 40, 20 * time.Millisecond, 0, 0},
		{"few", 20, 0, 0, 0},
		{"soon behind another", 300, time.Millisecond, time.Second, 0},
		{"long behind another", 300, time.Millisecond, 2 * time.Second, 256},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				asked, hints := r.owner(all), r.hints()
				w, _ := r.worker("n1")
				r.start(w)
				due := time.Now().Add(time.Minute)
				if tc.behind > 0 {
					r.armed("before", due.Add(-tc.behind))
				}
				var wids []string
				for i := range tc.n {
					wid := fmt.Sprintf("w%03d", i)
					wids = append(wids, wid)
					r.armed(wid, due.Add(time.Duration(i)*tc.apart))
				}
				time.Sleep(time.Until(due) + time.Duration(tc.n)*tc.apart + time.Second)
				want := tc.n
				if tc.behind > 0 {
					want++
				}
				if got := asked.Load(); got != int64(want) {
					t.Errorf("%d alarms have rung, want %d", got, want)
				}
				if got := len(hints); got != min(tc.want, 1) {
					t.Fatalf("the owner was told of a burst %d times, want %d", got, min(tc.want, 1))
				}
				if tc.want == 0 {
					return
				}
				h := <-hints
				if early := due.Sub(h.at); early < lead-10*time.Millisecond || early > lead {
					t.Errorf("the owner was told %v before the first is due, want %v", early, lead)
				}
				slices.Sort(h.wids)
				if tc.apart > 0 {
					wids = wids[:tc.want]
				}
				if len(h.wids) != tc.want || tc.apart > 0 && !slices.Equal(h.wids, wids) {
					t.Errorf("the owner was told of %d: %v; want %d, the first that are due", len(h.wids), h.wids, tc.want)
				}
				r.pending(0)
			})
		})
	}
}

// The hint names workflow ids (formats.md, Rings.soon), not what stands for them in subjects.
func TestHintNamesWorkflowIDs(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		hints := r.hints()
		r.owner(all)
		w, _ := r.worker("n1")
		r.start(w)
		due := time.Now().Add(time.Minute)
		var wids []string
		for i := range 40 {
			wid := fmt.Sprintf("order/%02d.eu", i)
			wids = append(wids, wid)
			r.armed(wid, due)
		}
		time.Sleep(2 * time.Minute)
		h := <-hints
		slices.Sort(h.wids)
		if !slices.Equal(h.wids, wids) {
			t.Errorf("the owner is told of %q..., want %q...", h.wids[:2], wids[:2])
		}
	})
}
