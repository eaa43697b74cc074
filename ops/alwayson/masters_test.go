package alwayson_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/sample"
	"github.com/droverhq/drover/schemas/ops"
)

// story is what an always-on workflow goes through; it asks whoever is the master.
func (h *house) story() {
	h.add(job(""))
	seen := []string{h.another("w")}
	for _, word := range []string{"complete", "fail", "continue", "complete"} {
		h.tell(word)
		seen = append(seen, h.another("w", seen...))
	}
	h.do("alwaysStop", ops.AlwaysRequest{ID: "w"})
	h.until("it is down", func() bool { return h.open("w") == "" })
	h.do("alwaysStart", ops.AlwaysRequest{ID: "w"})
	h.another("w", seen...)
}

// S2-3: the master is killed before each of its writes and requests in turn, and another takes over. There are never two runs, and there
// is always one again.
func TestKilledAtEachStep(t *testing.T) {
	sample.OneOfEight(t)
	steps := killedAt(t, 0)
	for step := range steps {
		t.Run(fmt.Sprint(step+1), func(t *testing.T) { killedAt(t, step+1) })
	}
	if steps < 10 {
		t.Errorf("the master has done %d steps, want more", steps)
	}
}

// killedAt plays the story with a master that is killed before a step, counted from 1; before none with 0. It returns how many it did.
func killedAt(t *testing.T, step int) (steps int) {
	t.Helper()
	var n atomic.Int64
	live(t, func(h *house) {
		o := h.o
		o.Before = func(string) error {
			if n.Add(1) == int64(step) {
				return errCut
			}
			return nil
		}
		h.masters(o, h.o)
		h.story()
		if all := h.runs("w"); len(all) != 6 {
			t.Errorf("got %d runs, want 6: %+v", len(all), all)
		}
	})
	return int(n.Load())
}

// S2-3: two masters at a time, as when one was stopped and goes on, begin no two runs.
func TestTwoMasters(t *testing.T) {
	live(t, func(h *house) {
		h.master(h.o)
		h.master(h.o)
		h.story()
		if n := len(h.runs("w")); n != 6 {
			t.Errorf("got %d runs, want 6: %+v", n, h.runs("w"))
		}
	})
}

// A master that stood still between the record of a run and its start does not begin it once more, however long it stood.
func TestStoppedBeforeTheStart(t *testing.T) {
	for _, long := range []time.Duration{10 * time.Second, 10 * time.Minute} {
		t.Run(long.String(), func(t *testing.T) {
			live(t, func(h *house) {
				var slow atomic.Bool
				o := h.o
				o.Before = func(what string) error {
					if what == "start w" && slow.CompareAndSwap(false, true) {
						time.Sleep(long)
					}
					return nil
				}
				h.master(o)
				h.add(job(""))
				h.until("it stands still", slow.Load)
				h.master(h.o)
				first := h.another("w")
				time.Sleep(long + time.Minute)
				if all := h.runs("w"); len(all) != 1 || all[0].Run != first {
					t.Errorf("got %+v, want run %s alone", all, first)
				}
			})
		})
	}
}
