package broker_test

import (
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/internal/cutwire"
)

// A list ends after the last letter, whatever number the caller knows already.
func TestDeadLettersLaterAllNumbers(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.publish("drover.default.signal.nobody.s", "1")
		f.publish("drover.default.signal.nobody.s", "2")
		if got := f.dead(); len(got) != 2 {
			t.Fatalf("got dead letters %v, want two", got)
		}
		c, err := drover.Connect(t.Context(), &drover.Options{Conn: f.post.NATS(), Logger: f.log})
		if err != nil {
			t.Fatal(err)
		}
		for _, after := range []uint64{2, math.MaxUint64 - 1, math.MaxUint64} {
			for e, err := range c.DeadLetters(t.Context(), drover.DeadOptions{After: after}) {
				t.Fatalf("after %d: got letter %d and error %v, want none", after, e.Sequence, err)
			}
			if counts, err := c.CountDeadLetters(t.Context(), drover.DeadOptions{After: after}); err != nil || len(counts) != 0 {
				t.Fatalf("after %d: got counts %v and error %v, want none", after, counts, err)
			}
		}
	})
}

// However many letters there are, the server counts them and none is sent, unless some have a reason that this version does not know.
func TestDeadLettersAreCountedUnread(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var read atomic.Int32
		f.node("a", func(subj string, _ []byte) cutwire.Verdict {
			if strings.Contains(subj, ".CONSUMER.CREATE."+ns.StreamDead()) {
				read.Add(1)
			}
			return cutwire.Pass
		})
		time.Sleep(time.Second)
		if got := f.counts(); len(got) != 0 {
			t.Fatalf("counted %v, want none", got)
		}
		for i, reason := range []string{"stray", "stray", "stale-token", "undecodable-task"} {
			f.publish(ns.Dead(reason, "0", "in", "1", strconv.Itoa(i)), "{}")
		}
		c, err := drover.Connect(t.Context(), &drover.Options{Conn: f.post.NATS(), Logger: f.log})
		if err != nil {
			t.Fatal(err)
		}
		counted := func(o drover.DeadOptions) map[string]int64 {
			t.Helper()
			counts, err := c.CountDeadLetters(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]int64{}
			for _, n := range counts {
				got[n.Reason] = n.Count
			}
			return got
		}
		want := map[string]int64{"stray": 2, "stale-token": 1, "undecodable-task": 1}
		if diff := cmp.Diff(want, counted(drover.DeadOptions{})); diff != "" || read.Load() != 0 {
			t.Errorf("letters were read %d times; (-want +got):\n%s", read.Load(), diff)
		}
		if diff := cmp.Diff(map[string]int64{"stray": 2}, counted(drover.DeadOptions{Reason: "stray"})); diff != "" || read.Load() != 0 {
			t.Errorf("letters were read %d times; (-want +got):\n%s", read.Load(), diff)
		}
		if diff := cmp.Diff(map[string]int64{"stray": 1, "stale-token": 1, "undecodable-task": 1}, counted(drover.DeadOptions{After: 1})); diff != "" {
			t.Errorf("after the first (-want +got):\n%s", diff)
		}
		f.publish(ns.Dead("of-tomorrow", "0"), "{}")
		want["of-tomorrow"] = 1
		if diff := cmp.Diff(want, counted(drover.DeadOptions{})); diff != "" {
			t.Errorf("with another version's (-want +got):\n%s", diff)
		}
	})
}
