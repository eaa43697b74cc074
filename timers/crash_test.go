package timers_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/cutwire"
)

// once gives a verdict on the first publish to a subject with a prefix.
func once(prefix string, v cutwire.Verdict) func(string, []byte) cutwire.Verdict {
	done := false
	return func(subject string, _ []byte) cutwire.Verdict {
		if !done && strings.HasPrefix(subject, prefix) {
			done = true
			return v
		}
		return cutwire.Pass
	}
}

const deleteAPI = "$JS.API.STREAM.MSG.DELETE."

// TestCrashes cuts a worker's connection, or kills it, around a ring and the deletion of its alarm. The owner sees the
// ring at least once, never early, and the alarm goes.
func TestCrashes(t *testing.T) {
	for _, tc := range []fault{
		{"acknowledgement of the ring lost", "drover.default.in.", cutwire.Break, 2, 3 * time.Second},
		{"ring lost", "drover.default.in.", cutwire.Swallow, 1, 11 * time.Second},
		{"killed before the ring", "drover.default.in.", cutwire.CutBefore, 1, claimTTL + time.Second},
		{"killed after the ring", "drover.default.in.", cutwire.CutAfter, 2, claimTTL + time.Second},
		{"killed before the deletion", deleteAPI, cutwire.CutBefore, 2, claimTTL + time.Second},
		{"killed after the deletion", deleteAPI, cutwire.CutAfter, 1, time.Second},
		{"answer to the deletion lost", deleteAPI, cutwire.Break, 1, time.Second},
		{"deletion lost", deleteAPI, cutwire.Swallow, 1, time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(_ *testing.T, r *rig) {
				r.firesDespite(tc, time.Minute+20*time.Second)
				r.quiet(2 * time.Minute)
			})
		})
	}
}

// fault is what happens to a message of a worker, and what is seen of its alarm then.
type fault struct {
	name    string
	prefix  string
	verdict cutwire.Verdict
	most    int           // rings; at least one always
	within  time.Duration // of the last of them
}

// firesDespite has an alarm of a worker that meets a fault, while another worker stands by, and looks at the rings of so long a time. The alarm after
// it is rung as ever.
func (r *rig) firesDespite(f fault, during time.Duration) {
	r.t.Helper()
	r.start(r.cutWorker("n1", once(f.prefix, f.verdict)))
	time.Sleep(time.Second)
	second, _ := r.worker("n2")
	r.start(second)
	due := time.Now().Add(time.Minute)
	seq := r.arm("w", due)
	fires := 0
	for enough := time.After(during); ; {
		select {
		case got := <-r.fires:
			fires++
			if got.Sequence != seq || got.at.Before(due) || got.at.Sub(due) > f.within {
				r.t.Fatalf("got ring %d of message %d %v after its time, want 0 to %v", fires, got.Sequence, got.at.Sub(due), f.within)
			}
			continue
		case <-enough:
		}
		break
	}
	if fires < 1 || fires > f.most {
		r.t.Fatalf("got %d rings, want 1 to %d", fires, f.most)
	}
	r.pending(0)
	r.expectOne("w", time.Now().Add(time.Minute))
}

// TestSequenceThatWasReused has a server that lost its tail and gave the sequence of a rung alarm to another one, while
// the connection was down and the deletion waited.
func TestSequenceThatWasReused(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w, _ := r.worker("n1")
		due := time.Now().Add(time.Hour)
		seq := r.arm("w", due)
		for _, tc := range []struct {
			name    string
			subject string
			due     time.Time
			deleted bool
		}{
			{"another run's", ns.Alarm(0, "x", "RUN"), due, false},
			{"a later one of the same run", ns.Alarm(0, "w", "RUN"), due.Add(-time.Minute), false},
			{"the same", ns.Alarm(0, "w", "RUN"), due, true},
		} {
			if err := w.DeleteAfterReconnect(t.Context(), seq, tc.subject, tc.due); err != nil {
				t.Fatalf("P-9/%s: %v", tc.name, err)
			}
			_, err := r.conn.GetSeq(t.Context(), ns.StreamAlarms(0), seq)
			if errors.Is(err, natsconn.ErrNotFound) != tc.deleted {
				t.Fatalf("P-9/%s: got %v, want deleted %v", tc.name, err, tc.deleted)
			}
		}
		if err := w.DeleteAfterReconnect(t.Context(), seq, ns.Alarm(0, "w", "RUN"), due); !errors.Is(err, natsconn.ErrNotFound) {
			t.Fatalf("P-9: got %v, want ErrNotFound: it is gone", err)
		}
	})
}
