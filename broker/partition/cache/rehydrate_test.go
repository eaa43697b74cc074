package cache_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env/envtest"
	"github.com/droverhq/drover/schemas"
)

// Runs that were passivated come back as they were, each with its own state, alarm and worker, also
// where messages between their records are missing. Those that wake together need fewer reads than
// they are, and one whose record is missing is read as any other.
func TestPassivatedRunsComeBack(t *testing.T) { // I15
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		p := onServer(t, o)
		var all []*story
		for n := range 12 {
			all = append(all, begins(t, o, fmt.Sprint("w", n)))
		}
		remove(t, o, begins(t, o, "foreign").seq)
		for n := range 12 {
			all = append(all, begins(t, o, fmt.Sprint("x", n)))
		}
		all[5].signals() // so that its last record does not say everything
		purged := begins(t, o, "purged")
		each := func(f func(n int, s *story, r *actor.Run)) {
			for n, s := range all {
				f(n, s, p.Get(s.wid))
			}
		}
		o.Do(func() {
			each(func(int, *story, *actor.Run) {})
			p.Get("purged")
		})
		o.Do(func() {
			p.wantSaid("once it is read", "purged", purged.stands())
			each(func(n int, s *story, r *actor.Run) {
				p.wantSaid("once it is read", s.wid, s.stands())
				r.Alarm = actor.Alarm{Due: schemas.Timestamp(1000 + n), Seq: uint64(100 + n)}
				r.Decider.Sticky = worker(uint64(n))
			})
			p.rest(time.Minute)
			if p.Len() > 0 {
				t.Errorf("%d runs are in memory after a minute", p.Len())
			}
			for _, s := range all {
				if p.NothingKnown(s.wid) {
					t.Errorf("nothing is known of %s, which is open", s.wid)
				}
			}
		})

		var reads atomic.Int64
		if _, err := o.Env.Conn.Subscribe("$JS.API.DIRECT.GET.>", "", func(natsconn.Msg) {
			reads.Add(1)
		}); err != nil {
			t.Fatal(err)
		}
		remove(t, o, purged.seq)
		o.Do(func() {
			each(func(_ int, s *story, _ *actor.Run) { p.ask(s.wid) })
			p.Get("purged")
			p.RehydrateAll()
		})
		o.Do(p.RehydrateAll)
		o.Do(func() {
			p.wantSaid("awake", "purged", "has no run")
			each(func(n int, s *story, r *actor.Run) {
				p.wantSaid("awake", s.wid, s.stands(), "when", "known", "kept")
				if r.Alarm.Due != schemas.Timestamp(1000+n) || r.Alarm.Seq != uint64(100+n) ||
					r.Decider.Sticky != worker(uint64(n)) || r.End.Sequence != s.seq {
					t.Errorf("%s ends at %d with the alarm %+v and the worker %q; want what it had",
						s.wid, r.End.Sequence, r.Alarm, r.Decider.Sticky)
				}
			})
		})
		if n := int(reads.Load()); n == 0 || n >= len(all) {
			t.Errorf("%d runs were brought back by %d reads; want some, and fewer", len(all), n)
		}
	})
}
