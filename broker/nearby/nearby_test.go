package nearby_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nearby"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// worker takes what it has room for.
type worker struct {
	room  bool
	asked int
	last  natsconn.Msg
}

func (w *worker) Take(_ string, m natsconn.Msg, _ nearby.Errand) bool {
	w.asked++
	w.last = m
	return w.room
}

type errand struct{}

func (errand) Open() (*schemas.ActivityTask, nearby.Decide, error) { return nil, nil, nil }

func TestTake(t *testing.T) {
	main := nearby.List{Namespace: "default", Name: "main"}
	for name, c := range map[string]struct {
		rooms []bool // of the workers of list main, in the order they came
		left  []int  // those that have left again
		list  nearby.List
		taken bool
		asked []int
	}{
		"nobody":                 {list: main},
		"one":                    {rooms: []bool{true}, list: main, taken: true, asked: []int{1}},
		"one without room":       {rooms: []bool{false}, list: main, asked: []int{1}},
		"the first with room":    {rooms: []bool{false, true, true}, list: main, taken: true, asked: []int{1, 1, 0}},
		"who has left":           {rooms: []bool{true, true}, left: []int{0}, list: main, taken: true, asked: []int{0, 1}},
		"all have left":          {rooms: []bool{true, true}, left: []int{1, 0}, list: main, asked: []int{0, 0}},
		"another list":           {rooms: []bool{true}, list: nearby.List{Namespace: "default", Name: "other"}, asked: []int{0}},
		"that of another tenant": {rooms: []bool{true}, list: nearby.List{Namespace: "tenant", Name: "main"}, asked: []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			b := nearby.On(&natsconn.Conn{})
			var workers []*worker
			var leave []func()
			for _, room := range c.rooms {
				w := &worker{room: room}
				workers, leave = append(workers, w), append(leave, b.Register(main, w))
			}
			for _, i := range c.left {
				leave[i]()
				leave[i]() // as often as one likes
			}
			if got := b.Take(c.list, "work", natsconn.Msg{Subject: "s"}, errand{}); got != c.taken {
				t.Errorf("taken %t, want %t", got, c.taken)
			}
			var asked []int
			for _, w := range workers {
				if asked = append(asked, w.asked); w.asked > 0 && w.last.Subject != "s" {
					t.Errorf("a worker got %+v", w.last)
				}
			}
			if diff := cmp.Diff(c.asked, asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// A connection has one board, and two have two.
func TestBoardOfAConnection(t *testing.T) {
	a, b := &natsconn.Conn{}, &natsconn.Conn{}
	nearby.On(a).Register(nearby.List{Namespace: "n", Name: "l"}, &worker{room: true})
	if got := nearby.On(a).Lists("n"); len(got) != 1 {
		t.Errorf("the board has forgotten list l: %v", got)
	}
	if got := nearby.On(b).Lists("n"); len(got) != 0 {
		t.Errorf("the other connection's board knows %v", got)
	}
}

// Whoever comes and goes: the lists are those of the workers that are there, in order, and nobody is asked for another's.
func TestLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type place struct {
			list  nearby.List
			w     *worker
			leave func()
		}
		b := nearby.On(&natsconn.Conn{})
		var there []place
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(there) > 0 && rapid.IntRange(0, 2).Draw(t, "what") == 0 {
				i := rapid.IntRange(0, len(there)-1).Draw(t, "who")
				there[i].leave()
				there = append(there[:i:i], there[i+1:]...)
			} else {
				l := nearby.List{
					Namespace: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"),
					Name:      fmt.Sprintf("l%02d", rapid.IntRange(0, nearby.MostLists+2).Draw(t, "list")),
				}
				w := &worker{}
				there = append(there, place{l, w, b.Register(l, w)})
			}
			for _, tenant := range []string{"a", "b"} {
				var want []string
				for n := range nearby.MostLists + 3 {
					l := nearby.List{Namespace: tenant, Name: fmt.Sprintf("l%02d", n)}
					asked := 0
					for _, p := range there {
						p.w.asked = 0
						if p.list == l {
							asked++
						}
					}
					b.Take(l, "work", natsconn.Msg{}, errand{})
					for _, p := range there {
						if p.w.asked > 0 != (p.list == l) {
							t.Fatalf("a worker of %v was asked %d times for %v", p.list, p.w.asked, l)
						}
					}
					if asked > 0 {
						want = append(want, l.Name)
					}
				}
				if len(want) > nearby.MostLists {
					want = nil
				}
				if diff := cmp.Diff(want, b.Lists(tenant)); diff != "" {
					t.Fatalf("lists of %s (-want +got):\n%s", tenant, diff)
				}
			}
		}
	})
}

// gate takes as long as it is told to.
type gate struct {
	open  atomic.Bool
	taken atomic.Int64
}

func (g *gate) Take(string, natsconn.Msg, nearby.Errand) bool {
	if !g.open.Load() {
		return false
	}
	g.taken.Add(1)
	return true
}

// Workers come and go while tasks come: each of these is taken at most once, and by none that has said it is closed.
func TestBoardIsShared(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		b := nearby.On(&natsconn.Conn{})
		l := nearby.List{Namespace: "n", Name: "l"}
		const each, workers = 200, 4
		var taken atomic.Int64
		var gates [workers]gate
		var wg sync.WaitGroup
		for i := range workers {
			wg.Go(func() {
				for range each {
					gates[i].open.Store(true)
					leave := b.Register(l, &gates[i])
					if len(b.Lists("n")) != 1 {
						t.Error("the list of a worker is not there")
					}
					leave()
					gates[i].open.Store(false)
				}
			})
			wg.Go(func() {
				for range each {
					if b.Take(l, "work", natsconn.Msg{}, errand{}) {
						taken.Add(1)
					}
				}
			})
		}
		wg.Wait()
		sum := int64(0)
		for i := range gates {
			sum += gates[i].taken.Load()
		}
		if sum != taken.Load() || b.Take(l, "work", natsconn.Msg{}, errand{}) || len(b.Lists("n")) != 0 {
			t.Errorf("%d were taken by somebody, %d by all; lists %v", taken.Load(), sum, b.Lists("n"))
		}
	})
}
