package nodes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

const (
	heartbeat = 2 * time.Second
	threshold = 10 * time.Second
	day       = 24 * time.Hour
	prefix    = "$KV." + subject.BucketNodes + "."
)

func TestMain(m *testing.M) {
	unregister := embedded.RegisterTicker()
	code := m.Run()
	unregister()
	os.Exit(code)
}

// bubble runs fn in virtual time with a server that has the bucket.
func bubble(t *testing.T, fn func(t *testing.T, s *embedded.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := embedded.Start(t.Context(), embedded.Options{DontListen: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Shutdown)
		if _, err := topology.Ensure(t.Context(), dial(t, s), topology.Options{Memory: true, Partitions: 1}); err != nil {
			t.Fatal(err)
		}
		fn(t, s)
	})
}

func dial(t *testing.T, s *embedded.Server) *post.Conn {
	t.Helper()
	conn, err := post.Dial(t.Context(), post.Options{InProcess: s.Conn()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func open(t *testing.T, s *embedded.Server) *nodes.Registry {
	t.Helper()
	r, err := nodes.Open(dial(t, s), nodes.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var boots atomic.Int64

func record(name string) schemas.NodeRecord {
	return schemas.NodeRecord{Node: name, Host: "host", PID: 7, Boot: fmt.Sprint("boot-", boots.Add(1)), Namespace: "default", Roles: []string{"ops"}}
}

func join(t *testing.T, r *nodes.Registry, rec schemas.NodeRecord, given bool) *nodes.Member {
	t.Helper()
	m, err := r.Join(t.Context(), rec, nodes.JoinOptions{Given: given})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// statuses shows what the register says, one word a node.
func statuses(t *testing.T, r *nodes.Registry) []string {
	t.Helper()
	list, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, i := range list {
		all = append(all, i.Node+" "+string(i.Status))
	}
	return all
}

func want(t *testing.T, r *nodes.Registry, all ...string) {
	t.Helper()
	if diff := cmp.Diff(all, statuses(t, r), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("the register (-want +got):\n%s", diff)
	}
}

func always() bool { return true }

func sweep(t *testing.T, r *nodes.Registry) nodes.Sweep {
	t.Helper()
	s, err := r.Sweep(t.Context(), always)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLifeOfARecord(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		r := open(t, s)
		filled := 0
		rec := record("a.host with ümlaut")
		m, err := r.Join(t.Context(), rec, nodes.JoinOptions{Fill: func(rec *schemas.NodeRecord) { filled++; rec.DiskFree = uint64(filled) }})
		if err != nil {
			t.Fatal(err)
		}
		if m.Former() != nil || m.Name() != rec.Node || m.Boot() != rec.Boot {
			t.Fatalf("got former %v, name %q, boot %q", m.Former(), m.Name(), m.Boot())
		}
		want(t, r, rec.Node+" recovering")
		if err := m.Set(t.Context(), schemas.NodeReady); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range 100 {
			time.Sleep(time.Second)
			i, err := r.Find(t.Context(), rec.Node)
			if err != nil {
				t.Fatal(err)
			}
			if age := r.Now(t.Context()).Sub(i.Stored); age > heartbeat+100*time.Millisecond || i.Status != schemas.NodeReady || !r.Alive(i, r.Now(t.Context())) {
				t.Fatalf("after %v: got %s, %v old", time.Since(began), i.Status, age)
			}
			if off := i.ClockOffset(); off > time.Millisecond || off < -100*time.Millisecond {
				t.Fatalf("got a clock offset of %v on one machine", off)
			}
		}
		if filled < 50 {
			t.Fatalf("the record was filled %d times in 100 s, want once a heartbeat", filled)
		}
		if err := m.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(t, r)
		if _, err := r.Find(t.Context(), rec.Node); !errors.Is(err, nodes.ErrNoNode) {
			t.Fatalf("got %v, want %v", err, nodes.ErrNoNode)
		}
		time.Sleep(time.Minute)
		want(t, r)
	})
}

func TestJoin(t *testing.T) {
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, r *nodes.Registry, rec *schemas.NodeRecord)
		given   bool
		taken   bool
		status  schemas.NodeStatus
	}{
		{"no record", func(*testing.T, *nodes.Registry, *schemas.NodeRecord) {}, false, false, schemas.NodeRecovering},
		{"one that ended properly", func(t *testing.T, r *nodes.Registry, _ *schemas.NodeRecord) {
			if err := join(t, r, record("n"), false).Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, false, false, schemas.NodeRecovering},
		{"a live one", func(t *testing.T, r *nodes.Registry, _ *schemas.NodeRecord) { join(t, r, record("n"), false) }, false, true, ""},
		{"a live one, but the name was given", func(t *testing.T, r *nodes.Registry, _ *schemas.NodeRecord) {
			join(t, r, record("n"), false)
		}, true, false, schemas.NodeUnexpectedShutdown},
		{"one that died a moment ago", func(t *testing.T, r *nodes.Registry, _ *schemas.NodeRecord) { join(t, r, record("n"), false).Close() }, false, true, ""},
		{"one that died a moment ago, but the name was given", func(t *testing.T, r *nodes.Registry, _ *schemas.NodeRecord) {
			join(t, r, record("n"), false).Close()
		}, true, false, schemas.NodeUnexpectedShutdown},
		{"one that died long ago", func(t *testing.T, r *nodes.Registry, _ *schemas.NodeRecord) {
			join(t, r, record("n"), false).Close()
			time.Sleep(threshold)
		}, false, false, schemas.NodeUnexpectedShutdown},
		{"one that was marked", func(t *testing.T, r *nodes.Registry, _ *schemas.NodeRecord) {
			join(t, r, record("n"), false).Close()
			time.Sleep(threshold)
			sweep(t, r)
		}, false, false, schemas.NodeUnexpectedShutdown},
		{"an earlier boot of the same store", func(t *testing.T, r *nodes.Registry, rec *schemas.NodeRecord) {
			rec.StoreID = "store"
			former := record("n")
			former.StoreID = "store"
			join(t, r, former, false).Close()
		}, false, false, schemas.NodeUnexpectedShutdown},
		{"something else in its key", func(t *testing.T, r *nodes.Registry, _ *schemas.NodeRecord) { junk(t, r, "n") }, false, false, schemas.NodeRecovering},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded.Server) {
				r, rec := open(t, s), record("n")
				junkyard = dial(t, s)
				tt.prepare(t, r, &rec)
				m, err := r.Join(t.Context(), rec, nodes.JoinOptions{Given: tt.given})
				if tt.taken {
					if !errors.Is(err, nodes.ErrTaken) || !strings.Contains(err.Error(), "process 7") {
						t.Fatalf("got %v, want %v with who has it", err, nodes.ErrTaken)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(m.Close)
				if m.Status() != tt.status || (m.Former() != nil) != (tt.status == schemas.NodeUnexpectedShutdown) {
					t.Fatalf("got %s, former %v, want %s", m.Status(), m.Former(), tt.status)
				}
				want(t, r, "n "+string(tt.status))
			})
		})
	}
}

var junkyard *post.Conn

func junk(t *testing.T, _ *nodes.Registry, key string) {
	t.Helper()
	if _, err := junkyard.KVCreate(t.Context(), subject.BucketNodes, key, []byte("not a record"), 0); err != nil {
		t.Fatal(err)
	}
}

// Of several that want one name in the same moment exactly one gets it.
func TestOneName(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		const contenders = 8
		got := make(chan error, contenders)
		for range contenders {
			r, rec := open(t, s), record("n")
			go func() {
				m, err := r.Join(t.Context(), rec, nodes.JoinOptions{})
				if err == nil {
					t.Cleanup(m.Close)
				}
				got <- err
			}()
		}
		won := 0
		for range contenders {
			switch err := <-got; {
			case err == nil:
				won++
			case !errors.Is(err, nodes.ErrTaken):
				t.Error(err)
			}
		}
		if won != 1 {
			t.Fatalf("%d of %d got the name, want 1", won, contenders)
		}
	})
}

func TestSilence(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		r := open(t, s)
		seldom, err := nodes.Open(dial(t, s), nodes.Options{Heartbeat: time.Minute, Threshold: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		lives, dies := join(t, seldom, record("lives"), false), join(t, r, record("dies"), false) // the one has three minutes
		for _, m := range []*nodes.Member{lives, dies} {
			if err := m.Set(t.Context(), schemas.NodeReady); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
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
		r, conn := open(t, s), dial(t, s)
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
		for _, gone := range []time.Duration{2 * threshold, 2 * day} {
			t.Run(fmt.Sprintf("%s after %v", status, gone), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded.Server) {
					r := open(t, s)
					m := join(t, r, record("n"), false)
					m.Close() // its heartbeats stop, as on a machine that hangs
					if err := m.Set(t.Context(), status); err != nil {
						t.Fatal(err)
					}
					time.Sleep(gone)
					sweep(t, r)
					if gone > day {
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

// Two processes with one given name: the one that came last has the record, and the other says so and stays away from it
// while that lives.
func TestANameIsGivenTwice(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		r := open(t, s)
		first := join(t, r, record("n"), true)
		second := join(t, r, record("n"), true)
		time.Sleep(time.Minute)
		if err := first.Set(t.Context(), schemas.NodeReady); !errors.Is(err, nodes.ErrTaken) {
			t.Fatalf("got %v, want %v", err, nodes.ErrTaken)
		}
		if i, err := r.Find(t.Context(), "n"); err != nil || i.Boot != second.Boot() {
			t.Fatalf("got %+v, %v, want the second's record", i, err)
		}
		second.Close()
		time.Sleep(threshold + heartbeat)
		if i, err := r.Find(t.Context(), "n"); err != nil || i.Boot != first.Boot() || i.Status != schemas.NodeReady {
			t.Fatalf("got %+v, %v, want the first's record when the second is dead", i, err)
		}
		if err := second.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(t, r, "n ready") // it takes nobody else's away
	})
}

func TestAdmit(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		r := open(t, s)
		self, peer := join(t, r, record("self"), false), join(t, r, record("peer"), false)
		foreign := record("foreign")
		foreign.Namespace = "other"
		join(t, r, foreign, false)
		halted := record("halted")
		join(t, r, halted, false).Close()
		join(t, r, record("halted"), true)
		names, err := r.Admit(t.Context(), "default", self.Boot())
		if err != nil || !slices.Equal(names, []string{"peer"}) {
			t.Fatalf("got %v, %v, want the peer", names, err)
		}
		want(t, r, "foreign recovering", "halted unexpected-shutdown", "peer ready", "self recovering")
		if got, err := peer.Refresh(t.Context()); err != nil || got != schemas.NodeReady {
			t.Fatalf("got %s, %v, want ready", got, err)
		}
		time.Sleep(time.Minute)
		want(t, r, "foreign recovering", "halted unexpected-shutdown", "peer ready", "self recovering")
	})
}

func TestRemove(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		r := open(t, s)
		junkyard = dial(t, s)
		junk(t, r, "x")
		m := join(t, r, record("n"), false)
		find := func(key string) nodes.Info {
			t.Helper()
			list, err := r.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(list, func(i nodes.Info) bool { return i.Key == key })
			if i < 0 {
				t.Fatalf("no record %s", key)
			}
			return list[i]
		}
		if err := r.Remove(t.Context(), find("n")); !errors.Is(err, nodes.ErrAlive) {
			t.Fatalf("got %v, want %v", err, nodes.ErrAlive)
		}
		m.Close()
		time.Sleep(threshold)
		dead := find("n")
		if err := m.Set(t.Context(), schemas.NodeReady); err != nil {
			t.Fatal(err)
		}
		if err := r.Remove(t.Context(), dead); !errors.Is(err, nodes.ErrChanged) {
			t.Fatalf("got %v, want %v", err, nodes.ErrChanged)
		}
		time.Sleep(threshold)
		dead = find("n")
		for range 2 { // the second time it is gone, which is as good
			if err := r.Remove(t.Context(), dead); err != nil {
				t.Fatal(err)
			}
		}
		if x := find("x"); !x.Malformed {
			t.Fatalf("got %+v, want a record that cannot be read", x)
		}
		if err := r.Remove(t.Context(), find("x")); err != nil {
			t.Fatal(err)
		}
		want(t, r)
	})
}

// Records that cannot be read are shown, judged by nobody, and removed after a day.
func TestMalformed(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		r, conn := open(t, s), dial(t, s)
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

// Many records come in several pages.
func TestManyNodes(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		r := open(t, s)
		for i := range 300 {
			join(t, r, record(fmt.Sprintf("n%03d", i)), false).Close()
		}
		list, err := r.List(t.Context())
		if err != nil || len(list) != 300 || list[0].Node != "n000" || list[299].Node != "n299" {
			t.Fatalf("got %d records, %v", len(list), err)
		}
	})
}

// While the server is away a node keeps its status and says it again afterwards.
func TestServerIsAway(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		r := open(t, s)
		conn := dial(t, s)
		mine, err := nodes.Open(conn, nodes.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := mine.Join(t.Context(), record("n"), nodes.JoinOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		conn.Close()
		if err := m.Set(t.Context(), schemas.NodeReady); err == nil {
			t.Fatal("want an error without a connection")
		}
		time.Sleep(time.Minute)
		if m.Status() != schemas.NodeReady {
			t.Fatalf("got %s, want ready", m.Status())
		}
		want(t, r, "n recovering")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.Leave(ctx); err == nil {
			t.Fatal("want an error: the record is still there")
		}
	})
}

func TestNames(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		r := open(t, s)
		names := []string{"a", "a.b", "a=2Eb", "A", "a_b", "a-b", "a b", "ä", "*", ">", "$KV", strings.Repeat("x", 200)}
		for _, n := range names {
			join(t, r, record(n), false)
		}
		list, err := r.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, i := range list {
			got = append(got, i.Node)
		}
		slices.Sort(got)
		slices.Sort(names)
		if !slices.Equal(got, names) {
			t.Fatalf("got %q, want %q", got, names)
		}
	})
}

func TestOptions(t *testing.T) {
	for want, o := range map[string]nodes.Options{
		"Heartbeat is 1ms": {Heartbeat: time.Millisecond},
		"Heartbeat is 2m":  {Heartbeat: 2 * time.Minute},
		"Threshold is 1s":  {Threshold: time.Second},
		"Forget is 1s":     {Forget: time.Second},
	} {
		if _, err := nodes.Open(nil, o); !errors.Is(err, nodes.ErrInvalidOptions) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %s", err, want)
		}
	}
	r, err := nodes.Open(nil, nodes.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for want, rec := range map[string]schemas.NodeRecord{
		"Node":        {Boot: "b", Namespace: "default"},
		"control":     {Node: "a\nb", Boot: "b", Namespace: "default"},
		"a Boot":      {Node: "n", Namespace: "default"},
		"a Namespace": {Node: "n", Boot: "b"},
	} {
		if _, err := r.Join(t.Context(), rec, nodes.JoinOptions{}); !errors.Is(err, nodes.ErrInvalidOptions) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %s", err, want)
		}
	}
}
