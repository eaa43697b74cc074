package nodes_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

func TestSilence(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		r := open(t, s)
		seldom, err := nodes.Open(embeddedtest.Connect(t, s), nodes.Options{Heartbeat: time.Minute, Threshold: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		lives, dies := join(t, seldom, record("lives"), false), join(t, r, record("dies"), false) // the one has three minutes
		for _, m := range []*nodes.Member{lives, dies} {
			if err := m.Set(t.Context(), schemas.NodeReady); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute + time.Second) // between two heartbeats
		dies.Close()
		last, err := r.Find(t.Context(), "dies")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(threshold - heartbeat)
		if got := sweep(t, r); got.Seen != 2 || len(got.NotResponding) != 0 {
			t.Fatalf("got %+v before the threshold", got)
		}
		time.Sleep(heartbeat)
		if got := sweep(t, r); !slices.Equal(got.NotResponding, []string{"dies"}) {
			t.Fatalf("got %+v, want dies", got)
		}
		want(t, r, "dies not-responding", "lives ready")
		i, err := r.Find(t.Context(), "dies")
		if err != nil || !i.HeardAt().Equal(last.Stored) || i.LastActive != last.LastActive || i.ClockOffset() != last.ClockOffset() {
			t.Fatalf("got heard at %v, offset %v, %v; want %v, %v of the last heartbeat", i.HeardAt(), i.ClockOffset(), err, last.Stored, last.ClockOffset())
		}
		if got := sweep(t, r); len(got.NotResponding) != 0 || got.Seen != 2 {
			t.Fatalf("got %+v, want it marked once", got)
		}
		time.Sleep(day - time.Minute)
		if got := sweep(t, r); len(got.Removed) != 0 {
			t.Fatalf("got %+v before a day is over", got)
		}
		time.Sleep(time.Minute)
		if got := sweep(t, r); !slices.Equal(got.Removed, []string{"dies"}) {
			t.Fatalf("got %+v, want dies", got)
		}
		want(t, r, "lives ready")
	})
}

// The mark of a removal goes too, so that a bucket that sees a new name each hour does not grow.
func TestMarksAreRemoved(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		r, conn := open(t, s), embeddedtest.Connect(t, s)
		for i := range 5 {
			if err := join(t, r, record(fmt.Sprint("pod-", i)), false).Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		count := func() int {
			got, _, err := conn.BatchGet(t.Context(), "KV_"+subject.BucketNodes, prefix+">", 1, 100)
			if err != nil {
				t.Fatal(err)
			}
			return len(got)
		}
		sweep(t, r)
		if n := count(); n != 5 {
			t.Fatalf("got %d messages, want the marks of 5 removals", n)
		}
		time.Sleep(day)
		join(t, r, record("pod-1"), false)
		sweep(t, r)
		if n := count(); n != 1 {
			t.Fatalf("got %d messages, want the living one", n)
		}
	})
}

func TestTheMasterMarksNoNodeThatIsHeardOf(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		r := open(t, s)
		m := join(t, r, record("n"), false)
		if err := m.Set(t.Context(), schemas.NodeReady); err != nil {
			t.Fatal(err)
		}
		m.Close()
		time.Sleep(2 * threshold)
		// It is heard of between the look and the write.
		beat := func() bool {
			if err := m.Set(t.Context(), schemas.NodeReady); err != nil {
				t.Error(err)
			}
			return true
		}
		if got, err := r.Sweep(t.Context(), beat); err != nil || len(got.NotResponding) != 0 {
			t.Fatalf("got %+v, %v, want no mark", got, err)
		}
		want(t, r, "n ready")
		time.Sleep(2 * threshold)
		if got, err := r.Sweep(t.Context(), func() bool { return false }); err != nil || len(got.NotResponding) != 0 {
			t.Fatalf("got %+v, %v from one that is the master no more", got, err)
		}
	})
}

// A node that was taken for dead, or whose record was removed, comes back with its own status.
func TestComesBack(t *testing.T) {
	for _, status := range []schemas.NodeStatus{schemas.NodeRecovering, schemas.NodeReady, schemas.NodeDraining, schemas.NodeUnexpectedShutdown} {
		for _, gone := range []time.Duration{2 * threshold, 20 * time.Minute} {
			t.Run(fmt.Sprintf("%s after %v", status, gone), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded.Server) {
					r, err := nodes.Open(embeddedtest.Connect(t, s), nodes.Options{Forget: 10 * time.Minute})
					if err != nil {
						t.Fatal(err)
					}
					m := join(t, r, record("n"), false)
					m.Close() // its heartbeats stop, as on a machine that hangs
					if err := m.Set(t.Context(), status); err != nil {
						t.Fatal(err)
					}
					time.Sleep(gone)
					sweep(t, r)
					if gone > 10*time.Minute {
						want(t, r)
					} else {
						want(t, r, "n not-responding")
					}
					if err := m.Set(t.Context(), m.Status()); err != nil { // a heartbeat
						t.Fatal(err)
					}
					want(t, r, "n "+string(status))
				})
			})
		}
	}
}

// Records that cannot be read are shown, judged by nobody, and removed after a day.
func TestMalformed(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		r, conn := open(t, s), embeddedtest.Connect(t, s)
		other, err := json.Marshal(schemas.NodeRecord{Node: "other"})
		if err != nil {
			t.Fatal(err)
		}
		for key, body := range map[string]string{"a": "", "b": "{", "c": `{"node":""}`, "d": string(other), "e": `{"v":1}`} {
			if _, err := conn.KVCreate(t.Context(), subject.BucketNodes, key, []byte(body), 0); err != nil {
				t.Fatal(err)
			}
		}
		list, err := r.List(t.Context())
		if err != nil || len(list) != 5 || slices.ContainsFunc(list, func(i nodes.Info) bool { return !i.Malformed || i.ClockOffset() != 0 }) {
			t.Fatalf("got %+v, %v, want 5 that cannot be read", list, err)
		}
		time.Sleep(time.Hour)
		if got := sweep(t, r); got.Seen != 5 || len(got.NotResponding)+len(got.Removed) != 0 {
			t.Fatalf("got %+v", got)
		}
		time.Sleep(day)
		if got := sweep(t, r); !slices.Equal(got.Removed, []string{"a", "b", "c", "d", "e"}) {
			t.Fatalf("got %+v", got)
		}
	})
}
