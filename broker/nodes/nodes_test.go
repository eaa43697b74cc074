package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

const (
	heartbeat = 2 * time.Second
	threshold = 10 * time.Second
	day       = 24 * time.Hour
	prefix    = "$KV." + subject.BucketNodes + "."
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// bubble runs fn in virtual time with a server that has the bucket.
func bubble(t *testing.T, fn func(t *testing.T, s *embedded.Server)) {
	t.Helper()
	virtual.Run(t, func(t *testing.T) {
		s := embeddedtest.Serve(t, embedded.Options{DontListen: true})
		if _, err := topology.Ensure(t.Context(), embeddedtest.Connect(t, s), topology.Options{Memory: true, Partitions: 1}); err != nil {
			t.Fatal(err)
		}
		fn(t, s)
	})
}

func open(t *testing.T, s *embedded.Server) *nodes.Registry {
	t.Helper()
	r, err := nodes.Open(embeddedtest.Connect(t, s), nodes.Options{})
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
		var filled atomic.Int64
		rec := record("a.host with ümlaut")
		m, err := r.Join(t.Context(), rec, nodes.JoinOptions{Fill: func(rec *schemas.NodeRecord) { rec.DiskFree = uint64(filled.Add(1)) }})
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
		if n := filled.Load(); n < 50 {
			t.Fatalf("the record was filled %d times in 100 s, want once a heartbeat", n)
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
		if err := second.Set(t.Context(), schemas.NodeReady); err != nil {
			t.Fatal(err)
		}
		if got, err := first.Refresh(t.Context()); err != nil || got != schemas.NodeReady {
			t.Fatalf("got %s, %v", got, err)
		}
		if err := first.Set(t.Context(), schemas.NodeDraining); !errors.Is(err, nodes.ErrTaken) { // it has seen the other's record, and still does not write over it
			t.Fatalf("got %v, want %v", err, nodes.ErrTaken)
		}
		if i, err := r.Find(t.Context(), "n"); err != nil || i.Boot != second.Boot() || i.Status != schemas.NodeReady {
			t.Fatalf("got %+v, %v, want the second's record", i, err)
		}
		second.Close()
		time.Sleep(threshold + 2*heartbeat + time.Second)
		if i, err := r.Find(t.Context(), "n"); err != nil || i.Boot != first.Boot() || i.Status != schemas.NodeDraining {
			t.Fatalf("got %+v, %v, want the first's record when the second is dead", i, err)
		}
		if err := second.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(t, r, "n draining") // it takes nobody else's away
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

// A node hears with its next heartbeat that it is Ready, and goes on to be heard of.
func TestAdmittedNodeGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		r := open(t, s)
		m := join(t, r, record("n"), false)
		if names, err := r.Admit(t.Context(), "default", ""); err != nil || !slices.Equal(names, []string{"n"}) {
			t.Fatalf("got %v, %v", names, err)
		}
		if err := m.Set(t.Context(), m.Status()); err != nil { // a heartbeat
			t.Fatal(err)
		}
		if m.Status() != schemas.NodeReady {
			t.Fatalf("got %s, want ready", m.Status())
		}
		want(t, r, "n ready")
	})
}

// A node that drains stays what it is, though the master has read its record before, and though it could not say so itself yet.
func TestNobodyTakesADrainBack(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		var verdict atomic.Int64
		w := cutwire.New(s.Conn())
		w.Judge(func(subj string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, prefix) {
				return cutwire.Verdict(verdict.Load())
			}
			return cutwire.Pass
		})
		w.Delay(time.Second)
		r := wired(t, w)
		m := join(t, open(t, s), record("n"), false)
		m.Close() // no heartbeat comes in between
		verdict.Store(int64(cutwire.Late))
		admitted := make(chan []string, 1)
		go func() {
			names, err := r.Admit(t.Context(), "default", "")
			if err != nil {
				t.Error(err)
			}
			admitted <- names
		}()
		time.Sleep(time.Second / 2)
		verdict.Store(int64(cutwire.Pass))
		if err := m.Set(t.Context(), schemas.NodeDraining); err != nil {
			t.Fatal(err)
		}
		if names := <-admitted; len(names) != 0 {
			t.Fatalf("got %v, want nobody admitted", names)
		}
		want(t, r, "n draining")

		cut := join(t, r, record("cut"), false)
		if err := cut.Set(t.Context(), schemas.NodeReady); err != nil {
			t.Fatal(err)
		}
		cut.Close()
		verdict.Store(int64(cutwire.Swallow))
		if err := cut.Set(t.Context(), schemas.NodeDraining); err == nil {
			t.Fatal("written on a wire that lets nothing through")
		}
		if got, err := cut.Refresh(t.Context()); err != nil || got != schemas.NodeDraining {
			t.Fatalf("got %s, %v, want draining", got, err)
		}
	})
}

func TestRemove(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		r := open(t, s)
		junkyard = embeddedtest.Connect(t, s)
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
		conn := embeddedtest.Connect(t, s)
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
