package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// rivals is how many clients work on one contested id, run or flag at a time, and tries what each of them does.
const (
	rivals = 3
	tries  = 5
)

// scene is one thing that clients do, from its beginning to its end.
type scene struct {
	w       *world
	id      string
	rng     *rand.Rand
	clients []*client
}

// load plays scenes until stop is closed, so many at a time. Those that have begun are played to their end.
func (w *world) load(ctx context.Context, round int, stop <-chan struct{}) {
	var wg sync.WaitGroup
	for actor := range w.o.actors {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(w.o.seed, uint64(round)<<32|uint64(actor)))
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-ctx.Done():
					return
				default:
				}
				s := &scene{w: w, id: fmt.Sprintf("r%d-a%d-%d", round, actor, n), rng: rng}
				for _, i := range rng.Perm(len(w.clients)) {
					s.clients = append(s.clients, w.clients[i])
				}
				s.play(ctx)
			}
		})
	}
	wg.Wait()
}

func (s *scene) play(ctx context.Context) {
	switch n := s.rng.IntN(10); {
	case n < 6:
		s.plan(ctx)
	case n < 8:
		s.contest(ctx)
	case n < 9:
		s.signals(ctx)
	default:
		s.flag(ctx)
	}
}

// begin starts a plan, until that is acknowledged.
func (s *scene) begin(ctx context.Context, p plan) (ok bool) {
	for n := 0; ctx.Err() == nil; n++ {
		switch o := s.clients[n%len(s.clients)].begin(ctx, s.id, p); o.Outcome {
		case OK:
			return true
		case Failed:
			s.w.violation("start of %s, which nobody else starts: %s", s.id, o.Error)
			return false
		}
	}
	return false
}

// plan starts a workflow of the load, signals it, and waits for its end.
func (s *scene) plan(ctx context.Context) {
	p := randomPlan(s.rng)
	if !s.begin(ctx, p) {
		return
	}
	c := s.clients[0]
	for n := range p.Signals {
		for try := 0; ctx.Err() == nil; try++ {
			value := fmt.Sprintf("%s %d.%d", s.id, n, try)
			var o Op
			switch s.rng.IntN(3) {
			case 0:
				o = c.signal(ctx, s.id, value)
			case 1:
				o = c.publish(ctx, s.id, value, true)
			default:
				o = c.publish(ctx, s.id, value, false)
			}
			if o.Outcome == OK || s.closed(ctx) { // one that is not known may have been the last that it waited for
				break
			}
		}
	}
	for p.Wait && ctx.Err() == nil {
		o := c.do(Op{Kind: Cancel, Key: s.id}, func(*Op) error { return c.c.Run(s.id, "").Cancel(ctx, "chaos") })
		if o.Outcome != Unknown {
			break
		}
	}
	if s.rng.IntN(2) == 0 {
		s.closesUnasked(ctx)
	}
	s.await(ctx, p)
}

// closesUnasked waits until the last record of the workflow closes it, by the history's stream. Whoever asks the API for a run has its owner load it, which
// would heal what was lost of it.
func (s *scene) closesUnasked(ctx context.Context) {
	partition := subject.Partition(s.id, partitions)
	runs := strings.TrimSuffix(namespace.History(partition, s.id, "-"), "-") + "*"
	status := schemas.Status("unknown")
	for ctx.Err() == nil {
		one, cancel := context.WithTimeout(ctx, oneTry)
		m, err := natsconn.Of(s.w.direct).LastBySubject(one, namespace.StreamHistory(partition), runs)
		cancel()
		if err == nil {
			if status = schemas.HeaderStatus(m.Header.Get(schemas.StatusHeader)); status.Closed() && status != schemas.StatusContinuedAsNew {
				return
			}
		}
		sleep.For(ctx, 50*time.Millisecond)
	}
	s.w.violation("workflow %s has not closed, while nobody asked for it: it is %s", s.id, status)
}

// closed tells whether the workflow is known to have ended.
func (s *scene) closed(ctx context.Context) bool {
	d, err := s.clients[0].c.Run(s.id, "").Describe(ctx)
	return err == nil && d.Execution.Status.Closed()
}

// await waits for the end of a plan, and judges it.
func (s *scene) await(ctx context.Context, p plan) {
	for ctx.Err() == nil {
		var status schemas.Status
		var text string
		o := s.clients[0].do(Op{Kind: Await, Key: s.id}, func(o *Op) error {
			end, err := s.clients[0].c.Run(s.id, "").Wait(ctx)
			if err != nil {
				return err
			}
			status, text = end.Status, end.Reason
			if status == schemas.StatusCompleted {
				if err := end.Result.Decode(&text); err != nil {
					text = string(end.Result)
				}
			}
			o.Result = string(status) + " " + text
			return nil
		})
		if o.Outcome == Unknown {
			continue
		}
		want := schemas.StatusCompleted
		if p.Wait {
			want = schemas.StatusCanceled
		}
		if o.Outcome != OK || status != want || !p.Wait && !p.fits(text) {
			s.w.violation("workflow %s with plan %+v: got %s %s, want %s", s.id, p, o.Result, o.Error, want)
			return
		}
		s.w.workflows.Add(1)
		return
	}
}

// hold starts a run that stays open, until that is acknowledged. A try of which nobody knows may be the one that did it.
func (s *scene) hold(ctx context.Context) (run string, ok bool) {
	for n := 0; ctx.Err() == nil; n++ {
		if o := s.clients[n%len(s.clients)].start(ctx, s.id, schemas.ConflictUseExisting); o.Outcome == OK {
			return o.Result, true
		}
	}
	return "", false
}

// together lets rivals do something to the same thing at the same time.
func (s *scene) together(fn func(c *client, rng *rand.Rand, n int)) {
	var wg sync.WaitGroup
	for i, c := range s.clients[:rivals] {
		rng := rand.New(rand.NewPCG(s.rng.Uint64(), uint64(i)))
		wg.Go(func() {
			for n := range tries {
				fn(c, rng, n)
			}
		})
	}
	wg.Wait()
}

// contest lets several clients start one id, end what they find, and look.
func (s *scene) contest(ctx context.Context) {
	s.together(func(c *client, rng *rand.Rand, _ int) {
		switch rng.IntN(5) {
		case 0:
			if o := c.open(ctx, s.id); o.Result != "" {
				c.end(ctx, s.id, o.Result)
			}
		case 1:
			c.open(ctx, s.id)
		case 2:
			c.start(ctx, s.id, schemas.ConflictFail)
		default:
			c.start(ctx, s.id, schemas.ConflictUseExisting)
		}
	})
	s.close(ctx)
}

// close ends whatever is open of the id, until nothing is: of an unknown start too, as it comes.
func (s *scene) close(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		c := s.clients[n%len(s.clients)]
		o := c.open(ctx, s.id)
		if o.Outcome == OK && o.Result == "" {
			return
		}
		if o.Result != "" {
			c.end(ctx, s.id, o.Result)
		}
	}
}

// signals lets several clients signal one run, in all the ways that there are, and read what has come.
func (s *scene) signals(ctx context.Context) {
	run, ok := s.hold(ctx)
	if !ok {
		return
	}
	s.together(func(c *client, rng *rand.Rand, n int) {
		value := fmt.Sprintf("%s c%d.%d", s.id, c.n, n)
		switch rng.IntN(4) {
		case 0:
			c.signal(ctx, s.id, value)
		case 1:
			c.publish(ctx, s.id, value, true)
		case 2:
			c.publish(ctx, s.id, value, false)
		default:
			c.peek(ctx, s.id, run)
		}
	})
	// Half of them close at once, so that some signals come too late.
	if s.rng.IntN(2) == 0 {
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	s.close(ctx)
}

// flag lets several clients set and reset one flag, and read its log.
func (s *scene) flag(ctx context.Context) {
	run, ok := s.hold(ctx)
	if !ok {
		return
	}
	s.together(func(c *client, rng *rand.Rand, n int) {
		note := fmt.Sprintf("c%d.%d", c.n, n)
		switch rng.IntN(5) {
		case 0, 1:
			c.flag(ctx, Set, s.id, run, note)
		case 2, 3:
			c.flag(ctx, Reset, s.id, run, note)
		default:
			c.log(ctx, s.id, run)
		}
	})
	s.clients[0].log(ctx, s.id, run)
	s.close(ctx)
}
