package activity_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/schemas"
)

// queue puts a task on list PCI with a priority.
func (r *rig) queue(priority int, token string) {
	r.t.Helper()
	body, err := schemas.MarshalJSON(task(func(t *schemas.ActivityTask) { t.Token = token }))
	if err == nil {
		_, err = r.conn.PublishSync(r.t.Context(), ns.Task("PCI", priority), nil, body)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// ledger notes the tokens of what runs and how many ran at a time.
type ledger struct {
	mu        sync.Mutex
	order     []string
	now, most int
}

func (l *ledger) work(takes time.Duration) func(context.Context, struct{}) (struct{}, error) {
	return func(ctx context.Context, _ struct{}) (struct{}, error) {
		l.mu.Lock()
		l.order = append(l.order, activity.Info(ctx).Run+activity.Info(ctx).IdempotencyKey)
		l.now++
		l.most = max(l.most, l.now)
		l.mu.Unlock()
		time.Sleep(takes)
		l.mu.Lock()
		l.now--
		l.mu.Unlock()
		return struct{}{}, nil
	}
}

// granting answers all questions with yes and gives the tokens of the successes in their order.
func (r *rig) granting(n int) (order []string) {
	r.t.Helper()
	for len(order) < n {
		select {
		case got := <-r.reports:
			switch got.Kind {
			case schemas.ReportBegin:
				r.answer(got.ReplyTo, schemas.Permission{Nonce: got.Nonce, Go: true, Token: got.Token})
			case schemas.ReportSuccess:
				order = append(order, got.Token)
			case schemas.ReportStarted:
			default:
				r.t.Fatalf("got report %s of %s", got.Kind, got.Token)
			}
		case <-time.After(10 * time.Minute):
			r.t.Fatalf("got %d outcomes in ten minutes, want %d", len(order), n)
		}
	}
	return order
}

// A task of a higher priority overtakes whatever waits when it comes, at a worker that is busy all the time.
func TestHigherPriorityGoesFirst(t *testing.T) {
	for _, tc := range []struct {
		name         string
		backlog, put int
		takes        time.Duration // below and above the time that a task waits in the worker's hand for a slot
	}{
		{"above low, slow", -1, 7, time.Second},
		{"above low, quick", -9, 1, time.Millisecond},
		{"above normal, slow", 0, 1, time.Second},
		{"normal above low, slow", -1, 0, time.Second},
		{"normal above low, quick", -1, 0, 5 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				const backlog, late = 50, 5
				var book ledger
				w := r.worker(func(o *activity.Options) { o.Concurrency = 1 })
				activity.Register(w, "work", book.work(tc.takes))
				for i := range backlog {
					r.queue(tc.backlog, fmt.Sprintf("RUN.%d.1", i))
				}
				r.start(w)
				order := r.granting(late)
				r.queue(tc.put, "RUN.100.1")
				r.queue(tc.put, "RUN.101.1")
				order = append(order, r.granting(backlog+2-late)...)
				// One task was running, and the next may have been on its way.
				if i := slices.Index(order, "RUN.101.1"); i < late || i > late+3 || order[i-1] != "RUN.100.1" {
					t.Fatalf("got the tasks of a higher priority at place %d of %v, want them right after %d", i, order, late)
				}
				if book.most != 1 {
					t.Fatalf("got %d at a time, want 1", book.most)
				}
				r.settled("PCI")
			})
		})
	}
}

// A worker with one slot that finds a backlog of all priorities does them in order.
func TestPrioritiesOfABacklog(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var book ledger
		w := r.worker(func(o *activity.Options) { o.Concurrency = 1 })
		activity.Register(w, "work", book.work(100*time.Millisecond))
		var want []string
		for i := range 30 {
			r.queue(i%3-1, fmt.Sprintf("RUN.%d.1", i))
		}
		for p := 2; p >= 0; p-- {
			for i := p; i < 30; i += 3 {
				want = append(want, fmt.Sprintf("RUN.%d.1", i))
			}
		}
		synctest.Wait() // the server tells consumers of a task after its acknowledgement: a pull in between finds none
		r.start(w)
		if got := r.granting(30); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// All priorities share the slots, and a burst of all of them at an idle worker loses and repeats nothing.
func TestPrioritiesShareTheSlots(t *testing.T) {
	for _, takes := range []time.Duration{0, time.Millisecond, 300 * time.Millisecond} {
		t.Run(takes.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				const n = 300
				var book ledger
				for range 2 {
					w := r.worker(func(o *activity.Options) { o.Concurrency = 7 })
					activity.Register(w, "work", func(ctx context.Context, in struct{}) (struct{}, error) { return book.work(takes)(ctx, in) })
					r.start(w)
				}
				time.Sleep(time.Second)
				for i := range n {
					r.queue(i%3-1, fmt.Sprintf("RUN.%d.1", i))
				}
				order := r.granting(n)
				r.settled("PCI")
				slices.Sort(order)
				if len(slices.Compact(order)) != n || len(book.order) != n {
					t.Fatalf("got %d outcomes of %d runs, want each of %d tasks once", len(slices.Compact(order)), len(book.order), n)
				}
				if book.most > 14 {
					t.Fatalf("got %d at a time, want at most 7 in each worker", book.most)
				}
			})
		})
	}
}

// What a busy worker cannot begin is there for an idle one within milliseconds.
func TestUrgentTaskFindsTheIdleWorker(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		for i := range 5 { // the first four are busy for an hour
			w := r.worker(func(o *activity.Options) { o.Concurrency, o.Identity = 1, fmt.Sprint("worker-", i) })
			activity.Register(w, "work", ignoreIn(func(ctx context.Context) (struct{}, error) {
				if i < 4 {
					<-ctx.Done()
				}
				return struct{}{}, nil
			}))
			r.start(w)
			time.Sleep(time.Second)
			if i < 4 {
				r.queue(0, fmt.Sprintf("RUN.%d.1", i))
				r.next(schemas.ReportStarted)
			}
		}
		began := time.Now()
		r.queue(1, "RUN.10.1")
		if got := r.granting(1); got[0] != "RUN.10.1" || time.Since(began) > 150*time.Millisecond {
			t.Fatalf("got %v after %v, want the urgent task soon", got, time.Since(began))
		}
	})
}
