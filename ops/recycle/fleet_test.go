package recycle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/ops/recycle"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const home = subject.Namespace("default")

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// fleet is the nodes of a deployment in virtual time, on one NATS server. Their roles are a pretence.
type fleet struct {
	t      *testing.T
	server *embedded.Server
	conn   *natsconn.Conn

	mu    sync.Mutex
	heard []ops.RecycleNotice
	busy  []string // nodes that restart their roles now
}

// player is a node.
type player struct {
	*fleet
	name     string
	register *nodes.Registry
	since    time.Time
	takes    time.Duration // that its roles need to restart
	exits    bool
	dies     bool // it is killed in its turn
	turns    int
	stop     func()
}

func virtually(t *testing.T, fn func(t *testing.T, f *fleet)) {
	t.Helper()
	virtual.Run(t, func(t *testing.T) {
		s := embeddedtest.Serve(t, embedded.Options{DontListen: true})
		f := &fleet{t: t, server: s, conn: embeddedtest.Connect(t, s)}
		if _, err := topology.Ensure(t.Context(), f.conn, topology.Options{Memory: true, Partitions: 1}); err != nil {
			t.Fatal(err)
		}
		sub, err := f.conn.Subscribe(home.NoticeRecycle(), "", func(m natsconn.Msg) {
			var n ops.RecycleNotice
			if err := json.Unmarshal(m.Data, &n); err != nil {
				t.Error(err)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			f.heard = append(f.heard, n)
		})
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		fn(t, f)
	})
}

// node begins a node, which runs until the test ends, or stop.
func (f *fleet) node(name string, edit func(p *player)) *player {
	f.t.Helper()
	conn := embeddedtest.Connect(f.t, f.server)
	register, err := nodes.Open(conn, nodes.Options{Heartbeat: 20 * time.Second, Threshold: time.Minute})
	if err != nil {
		f.t.Fatal(err)
	}
	p := &player{fleet: f, name: name, register: register, takes: 5 * time.Second}
	if edit != nil {
		edit(p)
	}
	p.since = recycle.Now(f.t.Context(), register)
	rec := schemas.NodeRecord{Node: name, Host: name, Boot: name + time.Now().String(), Namespace: string(home)}
	member, err := register.Join(f.t.Context(), rec, nodes.JoinOptions{Given: true, Fill: func(r *schemas.NodeRecord) {
		f.mu.Lock()
		defer f.mu.Unlock()
		r.RolesSince = schemas.At(p.since)
	}})
	if err != nil {
		f.t.Fatal(err)
	}
	held, err := claims.Open(conn, home.BucketClaims(), claims.Options{Node: name})
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(f.t.Context())
	r := recycle.NewRunner(recycle.RunnerOptions{
		Conn: conn, Namespace: home, Claims: held, Node: name, Exits: p.exits,
		Since: func() time.Time {
			f.mu.Lock()
			defer f.mu.Unlock()
			return p.since
		},
		Now: func(ctx context.Context) time.Time { return recycle.Now(ctx, register) },
		Restart: func(ctx context.Context, slot time.Time) error {
			leave := p.enter()
			defer leave()
			if p.dies {
				leave()
				conn.Close()
				<-ctx.Done()
				return ctx.Err()
			}
			time.Sleep(p.takes)
			if p.exits {
				cancel()
				return nil
			}
			f.mu.Lock()
			p.since = recycle.Now(ctx, register)
			f.mu.Unlock()
			return member.Set(ctx, schemas.NodeReady)
		},
	})
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := r.Run(ctx); err != nil {
			f.t.Errorf("%s: %v", name, err)
		}
	})
	p.stop = sync.OnceFunc(func() { cancel(); wg.Wait(); member.Close() })
	f.t.Cleanup(p.stop)
	return p
}

// enter notes that the roles of a node restart, until the returned function is called. No two do at a time.
func (p *player) enter() (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns++
	if p.busy = append(p.busy, p.name); len(p.busy) > 1 {
		p.t.Errorf("%v restart at a time", p.busy)
	}
	return func() { // also twice
		p.mu.Lock()
		defer p.mu.Unlock()
		p.busy = slices.DeleteFunc(p.busy, func(n string) bool { return n == p.name })
	}
}

// keeper is the master's part, by the connection of a node of its own.
func (f *fleet) keeper() (stop func()) {
	f.t.Helper()
	conn := embeddedtest.Connect(f.t, f.server)
	register, err := nodes.Open(conn, nodes.Options{Threshold: time.Minute, Heartbeat: 20 * time.Second})
	if err != nil {
		f.t.Fatal(err)
	}
	k := recycle.NewKeeper(recycle.KeeperOptions{Conn: conn, Namespace: home, Node: "master", Nodes: register})
	ctx, cancel := context.WithCancel(f.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := k.Run(ctx); err != nil {
			f.t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	f.t.Cleanup(stop)
	time.Sleep(time.Second) // it listens
	return stop
}

// asks asks a verb.
func (f *fleet) asks(verb string, q any) *ops.RecycleResponse {
	f.t.Helper()
	body, err := json.Marshal(q)
	if err != nil {
		f.t.Fatal(err)
	}
	m, err := f.conn.Request(f.t.Context(), home.API(verb), nil, body)
	if err != nil {
		f.t.Fatal(err)
	}
	a := new(ops.RecycleResponse)
	if err := json.Unmarshal(m.Data, a); err != nil {
		f.t.Fatal(err)
	}
	return a
}

// sets sets a recycle, which must be taken.
func (f *fleet) sets(r ops.Recycle) *ops.RecycleResponse {
	f.t.Helper()
	a := f.asks("recycleSet", ops.RecycleRequest{Recycle: &r})
	if a.Error != nil {
		f.t.Fatal(a.Error)
	}
	return a
}

// words are the notices that were heard, as in "a draining", and forgets them.
func (f *fleet) words() (words []string, heard []ops.RecycleNotice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.heard {
		words = append(words, strings.TrimSpace(n.Node+" "+string(n.Phase)))
	}
	heard, f.heard = f.heard, nil
	return words, heard
}

// wantRound checks the notices of one recycle: announced, then the nodes in any order, one after the other, then finished.
func (f *fleet) wantRound(names ...string) []ops.RecycleNotice {
	f.t.Helper()
	words, heard := f.words()
	var order []string
	ok := len(words) == 2*len(names)+2 && words[0] == "announced" && words[len(words)-1] == "finished"
	for i := 1; ok && i+1 < len(words); i += 2 {
		name, _, _ := strings.Cut(words[i], " ")
		ok = words[i] == name+" draining" && words[i+1] == name+" returned"
		order = append(order, name)
	}
	slices.Sort(order)
	if !ok || !slices.Equal(order, names) {
		f.t.Fatalf("got %v, want each of %v to drain and return, one after the other", words, names)
	}
	return heard
}

// S2-2, S2-5, S2-14: at its time the nodes restart their roles, each once, one after the other with a stagger in between,
// and whoever subscribes hears of it before.
func TestS2_05NodeByNode(t *testing.T) {
	virtually(t, func(t *testing.T, f *fleet) {
		players := []*player{f.node("a", nil), f.node("b", nil), f.node("c", nil)}
		f.keeper()
		began := time.Now().UTC()
		at := began.Add(time.Hour).Truncate(time.Minute)
		a := f.sets(ops.Recycle{At: at.Format("15:04")})
		if len(a.Nodes) != 3 || !a.Next.Time().Equal(at) {
			t.Fatalf("got %+v, want %v and three nodes", a, at)
		}
		time.Sleep(time.Until(at.Add(-10*time.Minute - time.Second)))
		if words, _ := f.words(); len(words) > 0 {
			t.Fatalf("got %v before the notice", words)
		}
		time.Sleep(time.Hour)
		heard := f.wantRound("a", "b", "c")
		if n := heard[0]; !n.At.Time().Equal(at) || !n.Slot.Time().Equal(at) {
			t.Errorf("announced is %+v, want %v", n, at)
		}
		if heard[1].At.Time().Before(at) {
			t.Errorf("a turn began at %v, before %v", heard[1].At.Time(), at)
		}
		for i := 3; i < 7; i += 2 {
			if pause := heard[i].At.Time().Sub(heard[i-1].At.Time()); pause < 2*time.Minute {
				t.Errorf("%v between two nodes", pause)
			}
		}
		for _, p := range players {
			if p.turns != 1 || p.since.Before(at) {
				t.Errorf("%s had %d turns, its roles run since %v", p.name, p.turns, p.since)
			}
		}
		if got := f.asks("recycleShow", ops.RecycleRequest{}).Next.Time(); !got.Equal(at.Add(24 * time.Hour)) {
			t.Errorf("the next is at %v, want a day after %v", got, at)
		}
	})
}

// A node that dies in its turn keeps the others waiting for no longer than its claim lasts and the stagger. Started again it has no other turn.
func TestANodeDiesInItsTurn(t *testing.T) {
	virtually(t, func(t *testing.T, f *fleet) {
		a := f.node("a", func(p *player) { p.dies = true })
		f.keeper()
		f.sets(ops.Recycle{Stagger: schemas.Duration(time.Minute)})
		f.asks("recycleNow", ops.RecycleRequest{})
		time.Sleep(5 * time.Second)
		b, c := f.node("b", func(p *player) { p.since = time.Time{} }), f.node("c", nil)
		f.mu.Lock()
		b.since, c.since = b.since.Add(-time.Hour), c.since.Add(-time.Hour) // they were there before
		f.mu.Unlock()
		time.Sleep(5 * time.Minute)
		a.stop()
		if a.turns != 1 || b.turns != 1 || c.turns != 1 {
			t.Fatalf("got %d, %d, %d turns", a.turns, b.turns, c.turns)
		}
		f.node("a", nil)
		time.Sleep(5 * time.Minute)
		words, _ := f.words()
		if len(words) != 7 || words[len(words)-1] != "finished" || words[1] != "a draining" {
			t.Fatalf("got %v", words)
		}
	})
}

// A process that is ended for a recycle, and started again by something else, says so when it is back.
func TestAProcessIsEnded(t *testing.T) {
	virtually(t, func(t *testing.T, f *fleet) {
		a := f.node("a", func(p *player) { p.exits = true })
		f.keeper()
		f.asks("recycleNow", ops.RecycleRequest{})
		time.Sleep(20 * time.Second)
		a.stop()
		f.node("a", nil)
		time.Sleep(20 * time.Second)
		if words, _ := f.words(); !slices.Equal(words, []string{"announced", "a draining", "a exited", "a returned", "finished"}) {
			t.Fatalf("got %v", words)
		}
	})
}

// Two masters, one of which does not know yet that it is none, announce a slot once.
func TestTwoMastersAnnounceOnce(t *testing.T) {
	virtually(t, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		stop := f.keeper()
		at := time.Now().UTC().Add(time.Hour).Truncate(time.Minute)
		f.sets(ops.Recycle{At: at.Format("15:04")})
		stop()
		f.keeper()
		f.keeper()
		time.Sleep(65 * time.Minute)
		f.wantRound("a")
	})
}

// There was no master when the recycle was due: it is announced when there is one, and made late.
func TestNoMasterAtTheTime(t *testing.T) {
	virtually(t, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		stop := f.keeper()
		at := time.Now().UTC().Add(time.Hour).Truncate(time.Minute)
		f.sets(ops.Recycle{At: at.Format("15:04")})
		stop()
		time.Sleep(90 * time.Minute)
		if words, _ := f.words(); len(words) > 0 {
			t.Fatalf("got %v without a master", words)
		}
		again := time.Now()
		f.keeper()
		time.Sleep(time.Hour)
		heard := f.wantRound("a")
		if wait := heard[1].At.Time().Sub(again); wait < 9*time.Minute {
			t.Errorf("its turn began %v after there was a master, want the notice in between", wait)
		}
	})
}

// What is announced and has not begun is called off with its time; what was asked for is not.
func TestCalledOff(t *testing.T) {
	virtually(t, func(t *testing.T, f *fleet) {
		a := f.node("a", nil)
		f.keeper()
		at := time.Now().UTC().Add(20 * time.Minute).Truncate(time.Minute)
		f.sets(ops.Recycle{At: at.Format("15:04")})
		time.Sleep(15 * time.Minute)
		if got := f.asks("recycleShow", ops.RecycleRequest{}); got.Next.Time() != at || len(got.Nodes) != 1 || got.Nodes[0].Phase != ops.RecycleAnnounced {
			t.Fatalf("got %+v", got)
		}
		f.sets(ops.Recycle{})
		time.Sleep(time.Hour)
		words, heard := f.words()
		if !slices.Equal(words, []string{"announced", "finished"}) || !strings.Contains(heard[1].Reason, "called off") || a.turns != 0 {
			t.Fatalf("got %v, %+v, %d turns", words, heard, a.turns)
		}
		if got := f.asks("recycleNow", ops.RecycleRequest{Notice: schemas.Duration(10 * time.Minute), Reason: "new certificates"}); got.Error != nil || got.Latest.Reason != "new certificates" {
			t.Fatalf("got %+v", got)
		}
		f.sets(ops.Recycle{At: "00:00"})
		time.Sleep(20 * time.Minute)
		f.wantRound("a")
	})
}

// Bad requests are refused with the field and the way out, and change nothing.
func TestBadRequests(t *testing.T) {
	virtually(t, func(t *testing.T, f *fleet) {
		f.keeper()
		early := f.asks("recycleNow", ops.RecycleRequest{})
		if e := early.Error; e == nil || e.Code != schemas.CodeConflict || e.Field != "namespace" || !strings.Contains(e.Hint, "drover node list") {
			t.Fatalf("got %+v of a namespace that is no node's home", early)
		}
		f.node("a", nil)
		set := func(r ops.Recycle) ops.RecycleRequest { return ops.RecycleRequest{Recycle: &r} }
		for i, tc := range []struct {
			verb, field string
			q           any
		}{
			{"recycleSet", "recycle", ops.RecycleRequest{}},
			{"recycleSet", "recycle.at", set(ops.Recycle{At: "half past three"})},
			{"recycleSet", "recycle.timeZone", set(ops.Recycle{At: "03:30", TimeZone: "Mars/Olympus"})},
			{"recycleSet", "recycle", set(ops.Recycle{At: "03:30", Asked: 1})},
			{"recycleSet", "notice", ops.RecycleRequest{Recycle: &ops.Recycle{At: "03:30"}, Notice: 1}},
			{"recycleNow", "recycle", set(ops.Recycle{At: "03:30"})},
			{"recycleNow", "notice", ops.RecycleRequest{Notice: -1}},
			{"recycleNow", "notice", ops.RecycleRequest{Notice: schemas.Duration(25 * time.Hour)}},
			{"recycleNow", "reason", ops.RecycleRequest{Reason: strings.Repeat("x", 1025)}},
			{"recycleShow", "recycle", set(ops.Recycle{At: "03:30"})},
			{"recycleSet", "at", map[string]string{"at": "03:30"}},
		} {
			a := f.asks(tc.verb, tc.q)
			if a.Error == nil || a.Error.Code != schemas.CodeInvalid || a.Error.Field != tc.field {
				t.Errorf("%d: %s: got %+v, want a refusal of %s", i, tc.verb, a.Error, tc.field)
			} else if tc.field != "at" && a.Error.Hint == "" && !strings.Contains(fmt.Sprint(a.Error), "did you mean") {
				t.Errorf("%d: %s: no way out: %+v", i, tc.verb, a.Error)
			}
		}
		time.Sleep(time.Hour)
		if a := f.asks("recycleShow", ops.RecycleRequest{}); a.Error != nil || a.Recycle.At != "" || a.Next != 0 || a.Latest != nil {
			t.Fatalf("got %+v, want nothing set", a)
		}
	})
}

// A value that somebody has damaged is told of, ends nothing, and is written over by the next set.
func TestDamagedKeys(t *testing.T) {
	virtually(t, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.keeper()
		for _, key := range []string{"recycle", "recycle.state"} {
			for _, body := range []string{"", "{", `{"at":7}`, `{"at":"99:99","phase":"flying"}`} {
				_, rev, err := f.conn.KVLast(t.Context(), home.BucketSchedules(), key)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.conn.KVUpdate(t.Context(), home.BucketSchedules(), key, []byte(body), rev, 0); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Minute)
			}
		}
		f.words()
		f.sets(ops.Recycle{At: "12:00"})
		f.asks("recycleNow", ops.RecycleRequest{})
		time.Sleep(time.Minute)
		f.wantRound("a")
	})
}
