package chaos

import (
	"cmp"
	"context"
	"flag"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	duration  = flag.Duration("chaos.duration", 0, "how long TestChaos runs (default 30 s)")
	seedFlag  = flag.Uint64("chaos.seed", 0, "seed of TestChaos (default a new one, which is printed)")
	topoFlag  = flag.String("chaos.topology", "", "topologies of TestChaos, with commas: bare, embedded, cluster; they take turns (default all)")
	reportTo  = flag.String("chaos.report", "", "file to which TestChaos appends its reports, a line of JSON each (default none)")
	roundTime = flag.Duration("chaos.round", 40*time.Second, "how long faults go on before everything is checked")
	turnTime  = flag.Duration("chaos.turn", 200*time.Second, "how long one topology runs before the next one takes its turn")
)

// Load and faults by a seed, for as long as asked: see the package.
func TestChaos(t *testing.T) {
	if *duration == 0 && *seedFlag == 0 && *topoFlag == "" {
		// What runs always is TestChaosShort. This one runs 30 s of one topology only when it is asked for anything.
		t.Log("nothing asked for: use -chaos.duration, -chaos.seed or -chaos.topology; make chaos does")
		return
	}
	seed := cmp.Or(*seedFlag, uint64(time.Now().UnixNano()))
	topologies := strings.Split(cmp.Or(*topoFlag, strings.Join([]string{bare, embedded, clusters}, ",")), ",")
	left := cmp.Or(*duration, 30*time.Second)
	turn := min(*turnTime, left/time.Duration(len(topologies)))
	for n := 0; left > 0 && !t.Failed(); n++ {
		topology := topologies[n%len(topologies)]
		d := min(turn, left)
		left -= d
		t.Run(topology, func(t *testing.T) {
			w := newWorld(t, options{topology: topology, seed: seed + uint64(n), actors: 10})
			t.Logf("-chaos.topology=%s -chaos.seed=%d", topology, w.o.seed)
			w.turn(d)
			w.tell()
		})
	}
}

// turn runs rounds until the time is over. The checks are not part of it.
func (w *world) turn(d time.Duration) {
	for round := 0; d > 0 && !w.t.Failed(); round++ {
		one := min(d, *roundTime)
		d -= one
		w.round(round, func(stop <-chan struct{}) {
			over := make(chan struct{})
			timer := time.AfterFunc(one, func() { close(over) })
			defer timer.Stop()
			victims := w.victims()
			var wg sync.WaitGroup
			lanes, most := 3, 3*time.Second
			if w.o.topology == clusters { // each election takes seconds, in which nothing else can be seen
				lanes, most = 2, 6*time.Second
			}
			for lane := range lanes {
				s := w.schedule(round*16+lane, victims, 60, most)
				wg.Go(func() { s.run(over) })
			}
			wg.Wait()
		})
	}
}

// round plays the load while faults are injected, lets everything come to an end, and checks it.
func (w *world) round(n int, inject func(stop <-chan struct{})) {
	w.t.Helper()
	recorded, err := w.rec.Ops(0)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	watching, blind := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	watchers.Go(func() { w.watch(watching) })
	w.probe(watching)
	stop, loaded := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(loaded)
		w.load(ctx, n, stop)
	}()
	inject(stop)
	close(stop)
	healed := time.Now()
	for _, m := range w.members {
		m.awaitReady(w.t)
	}
	select {
	case <-loaded:
		w.report.ended(time.Since(healed))
	case <-time.After(patience):
		w.violation("not everything has ended %v after the last fault (I18)", patience)
		cancel()
		<-loaded
	}
	blind()
	watchers.Wait()
	w.report.Rounds++
	if w.t.Failed() {
		return // what is under way cannot be judged
	}
	limit, done := context.WithTimeout(w.t.Context(), 5*patience)
	defer done()
	w.audit(limit, n, len(recorded))
	w.t.Logf("round %d is checked: its last workflow ended %v after the faults", n, w.report.slowestEnd.Round(time.Millisecond))
}

// tell prints the report.
func (w *world) tell() {
	w.claimers()
	w.report.OK, w.report.Failed, w.report.Unknown, _ = w.rec.Counts()
	for _, p := range w.links {
		c := p.Counts()
		w.report.Messages["lost"] += c.RepliesDropped
		w.report.Messages["doubled"] += c.Duplicated
		w.report.Messages["postponed"] += c.Postponed
	}
	if w.report.Ahead == 0 && w.report.Rounds > 1 {
		w.violation("no decision came with an outcome: this way was not tried")
	}
	if w.t.Failed() {
		w.report.Dir = w.dir
	}
	w.t.Logf("%s", w.report)
	for _, key := range w.report.Undecided {
		w.t.Logf("undecided: %s", key)
	}
	if *reportTo != "" {
		if err := w.report.write(*reportTo); err != nil {
			w.t.Error(err)
		}
	}
}

// The share of every build: the faults that hurt most, in a fixed order, each when so many operations are acknowledged.
func TestChaosShort(t *testing.T) {
	w := newWorld(t, options{topology: bare, seed: 20261121, actors: 6})
	w.round(0, func(<-chan struct{}) {
		victims := w.victims()
		var wg sync.WaitGroup
		for lane, plan := range [][]string{
			{"kill -9 of NATS/nats", "kill -9/broker-1", "lost answers/timers-2", "pause beyond the TTL/broker-1"},
			{"kill -9/pair-1", "doubled messages/broker-2", "half-open to the client/client-0", "kill -9/timers-1"},
			{"lost answers/pair-2", "pause beyond the TTL/claimer-1", "kill -9/decider-1", "cut/client-1"},
		} {
			s := w.schedule(lane, victims, 40, 2*time.Second)
			wg.Go(func() { s.plan(plan) })
		}
		wg.Wait()
	})
	w.tell()
	if r := w.report; len(r.Injected) != 12 || r.OK == 0 || r.Workflows == 0 || r.Judged == 0 {
		t.Errorf("got %d faults, want 12, and a load that was judged:\n%s", len(r.Injected), r)
	}
}
