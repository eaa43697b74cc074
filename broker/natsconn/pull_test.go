package natsconn

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/internal/virtual"
)

const ackWait = 5 * time.Second

// Held is how many tasks are delivered and not released.
func (p *Puller) Held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// queue makes the work queue S with the durable consumer W.
func queue(t testing.TB, c *Conn) {
	t.Helper()
	stream(t, c, func(cfg *jetstream.StreamConfig) { cfg.Retention = jetstream.WorkQueuePolicy })
	consumer(t, c)
}

func consumer(t testing.TB, c *Conn) {
	t.Helper()
	_, err := c.JetStream().CreateConsumer(t.Context(), "S", jetstream.ConsumerConfig{
		Durable: "W", AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxAckPending: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func pull(t testing.TB, c *Conn, limit int, fn func(Task)) *Puller {
	t.Helper()
	p, err := c.Pull(t.Context(), PullOptions{Stream: "S", Consumers: []string{"W"}, Max: limit}, fn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// finish acknowledges a task and gives its slot back.
func finish(t testing.TB, task Task) {
	t.Helper()
	if err := task.Ack(); err != nil {
		t.Error(err)
	}
	task.Release()
}

func TestPullHoldsAtMostMax(t *testing.T) {
	c := connect(t)
	queue(t, c)
	const limit, n = 7, 500
	fill(t, c, n, 3)
	var running, most atomic.Int32
	var mu sync.Mutex
	seen := map[uint64]int{}
	done := make(chan struct{}, n)
	pull(t, c, limit, func(task Task) {
		go func() {
			most.Store(max(most.Load(), running.Add(1)))
			mu.Lock()
			seen[task.Seq]++
			mu.Unlock()
			if task.Delivered != 1 || task.Time.IsZero() || string(task.Data) != fmt.Sprint(task.Seq-1) {
				t.Errorf("got %+v", task)
			}
			if err := task.Ack(); err != nil {
				t.Error(err)
			}
			running.Add(-1)
			task.Release()
			task.Release() // once is enough
			done <- struct{}{}
		}()
	})
	for range n {
		receive(t, done)
	}
	if most.Load() > limit {
		t.Fatalf("got %d tasks at a time, want at most %d", most.Load(), limit)
	}
	if len(seen) != n {
		t.Fatalf("got %d tasks, want %d", len(seen), n)
	}
	for seq, times := range seen {
		if times != 1 {
			t.Fatalf("task %d was delivered %d times", seq, times)
		}
	}
}

// A server may bound what one request asks for (max_request_batch), and so may a consumer.
func TestPullAsksForWhatIsAllowed(t *testing.T) {
	c := connect(t)
	queue(t, c)
	if _, err := c.JetStream().UpdateConsumer(t.Context(), "S", jetstream.ConsumerConfig{
		Durable: "W", AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxAckPending: -1, MaxRequestBatch: 3,
	}); err != nil {
		t.Fatal(err)
	}
	const limit, n = 7, 50
	fill(t, c, n, 3)
	done := make(chan struct{}, n)
	p := pull(t, c, limit, func(task Task) {
		finish(t, task)
		done <- struct{}{}
	})
	for range n {
		receive(t, done)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if got := p.consumers[0].most; got != 3 {
		t.Errorf("got %d for a request at most, want 3", got)
	}
}

// Without releases exactly Max tasks come, for as long as one waits; each release brings one more.
func TestPullWaitsForReleases(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		queue(t, c)
		fill(t, c, 20, 1)
		tasks := make(chan Task, 20)
		p := pull(t, c, 3, func(task Task) { tasks <- task })
		keep := func(held []Task) {
			for range 6 { // leases are kept for half an hour, in steps below AckWait
				time.Sleep(4 * time.Second)
				for _, task := range held {
					if err := task.InProgress(); err != nil {
						t.Error(err)
					}
				}
			}
		}
		held := []Task{<-tasks, <-tasks, <-tasks}
		keep(held)
		if len(tasks) != 0 || p.Held() != 3 {
			t.Fatalf("got %d more tasks, %d held, want 0, 3", len(tasks), p.Held())
		}
		if err := held[0].Ack(); err != nil {
			t.Fatal(err)
		}
		held[0].Release()
		next := <-tasks
		if next.Seq != 4 || next.Delivered != 1 {
			t.Fatalf("got task %d, delivery %d, want 4, 1", next.Seq, next.Delivered)
		}
		keep(append(held[1:], next))
		if len(tasks) != 0 {
			t.Fatalf("got %d more tasks, want none", len(tasks))
		}
	})
}

func TestPullRedelivers(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		queue(t, c)
		put(t, c, "s.a", "x")
		tasks := make(chan Task, 10)
		pull(t, c, 4, func(task Task) { tasks <- task })
		first := <-tasks
		began := time.Now()
		second := <-tasks // AckWait passed
		if second.Seq != first.Seq || second.Delivered != 2 || time.Since(began) < ackWait {
			t.Fatalf("got task %d, delivery %d after %v", second.Seq, second.Delivered, time.Since(began))
		}
		first.Release()
		if err := second.Nak(3 * time.Second); err != nil {
			t.Fatal(err)
		}
		second.Release()
		began = time.Now()
		third := <-tasks
		if took := time.Since(began); third.Delivered != 3 || took < 3*time.Second || took > 4*time.Second {
			t.Fatalf("got delivery %d after %v, want 3 after 3 s", third.Delivered, took)
		}
		if err := third.Nak(0); err != nil {
			t.Fatal(err)
		}
		third.Release()
		fourth := <-tasks
		if err := fourth.Term(); err != nil {
			t.Fatal(err)
		}
		fourth.Release()
		time.Sleep(time.Hour)
		if _, last, err := c.StreamState(t.Context(), "S"); err != nil || last != 1 || len(tasks) != 0 {
			t.Fatalf("got %d tasks after Term, last %d, %v", len(tasks), last, err)
		}
	})
}

// After Close the server has nobody here to deliver to: what is stored next is delivered to another at once, for the first time.
func TestPullClosedGetsNothingMore(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		srv, stop := start(t, serverOptions(t))
		t.Cleanup(stop)
		c, other := dial(t, Options{InProcess: srv}), dial(t, Options{InProcess: srv})
		queue(t, c)
		for n := range 200 {
			mine := pull(t, other, 1, func(task Task) { t.Errorf("round %d: got task %d after Close", n, task.Seq) })
			synctest.Wait()
			tasks := make(chan Task, 1)
			mine.Close()
			put(t, c, "s.a", "x")
			p := pull(t, c, 1, func(task Task) { tasks <- task })
			task := <-tasks
			if task.Delivered != 1 {
				t.Fatalf("round %d: got delivery %d, want the first", n, task.Delivered)
			}
			finish(t, task)
			p.Close()
		}
	})
}

// What is on its way when the puller closes is given back at once.
func TestPullClosedGivesBack(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		queue(t, c)
		p := pull(t, c, 1, func(task Task) { t.Errorf("task %d was handed on", task.Seq) })
		p.Close()
		fill(t, c, 1, 3)
		synctest.Wait()
		late, ok := take(t, c)
		if !ok {
			t.Fatal("no task came")
		}
		p.task(&nats.Msg{Subject: late.Subject, Reply: late.Reply, Data: late.Data})
		synctest.Wait()
		if again, ok := take(t, c); !ok || again.Seq != late.Seq || again.Delivered != 2 {
			t.Errorf("got %+v, %v, want the task for the second time, before its lease is over", again, ok)
		}
	})
}

// A worker may start before the stream exists, outlive consumer and stream, and idle for hours.
func TestPullWaitsForTheStream(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		tasks := make(chan Task, 10)
		pull(t, c, 2, func(task Task) {
			finish(t, task)
			tasks <- task
		})
		next := func(within time.Duration) {
			t.Helper()
			began := time.Now()
			put(t, c, "s.a", "x")
			<-tasks
			if took := time.Since(began); took > within {
				t.Fatalf("got the task after %v, want at most %v", took, within)
			}
			synctest.Wait() // the server knows that it is done, or the next consumer has it once more
		}
		time.Sleep(time.Minute)
		queue(t, c)
		next(pullRetryMax)
		time.Sleep(3 * time.Hour)
		next(0)
		if err := c.JetStream().DeleteConsumer(t.Context(), "S", "W"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		consumer(t, c)
		next(pullRetryMax)
	})
}

func TestPullSurvivesAServerRestart(t *testing.T) {
	o := listening(t)
	srv, stop := start(t, o)
	o.Port = port(srv)
	c := dial(t, Options{URL: srv.ClientURL()})
	queue(t, c)
	tasks := make(chan Task, 100)
	p := pull(t, c, 5, func(task Task) { tasks <- task })
	finish := func(n int) {
		t.Helper()
		for range n {
			task := receive(t, tasks)
			finish(t, task)
		}
	}
	fill(t, c, 20, 1)
	finish(20)
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	back := make(chan struct{}, 1)
	t.Cleanup(c.OnReconnect(func() { back <- struct{}{} }))
	stop()
	_, stop = start(t, o)
	t.Cleanup(stop)
	receive(t, back) // what is sent before the end of the connection is noticed may be lost with it
	put(t, c, "s.a", "after")
	finish(1)
	p.Close()
	p.Close()
	if p.Held() != 0 {
		t.Fatalf("got %d held, want 0", p.Held())
	}
}

// An activity worker needs to pull, acknowledge and read its inbox, nothing else.
func TestPullNeedsFewRights(t *testing.T) {
	o := serverOptions(t)
	o.Users = []*server.User{
		{Username: "root", Password: "p"},
		{Username: "worker", Password: "p", Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{"$JS.API.CONSUMER.MSG.NEXT.S.W", "$JS.ACK.S.W.>"}},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}},
	}
	srv, stop := start(t, o)
	t.Cleanup(stop)
	root := dial(t, Options{InProcess: srv, User: "root", Password: "p"})
	queue(t, root)
	fill(t, root, 10, 1)
	c := dial(t, Options{InProcess: srv, User: "worker", Password: "p"})
	tasks := make(chan Task, 10)
	pull(t, c, 2, func(task Task) {
		finish(t, task)
		tasks <- task
	})
	for range 10 {
		receive(t, tasks)
	}
}

func TestPullRefuses(t *testing.T) {
	c := connect(t)
	for _, o := range []PullOptions{{}, {Stream: "S"}, {Stream: "S", Consumers: []string{"W"}}, {Stream: "S", Consumers: []string{"W"}, Max: -1}, {Stream: "S.>", Consumers: []string{"W"}, Max: 1}} {
		_, err := c.Pull(t.Context(), o, func(Task) {})
		wantErr(t, err, ErrInvalid)
	}
	wantErr(t, Task{}.Ack(), ErrInvalid)
	Task{}.Release()
	c.Close()
	_, err := c.Pull(t.Context(), PullOptions{Stream: "S", Consumers: []string{"W"}, Max: 1}, func(Task) {})
	wantErr(t, err, ErrClosed)
}

func BenchmarkPull(b *testing.B) {
	for _, limit := range []int{1, 10, 100} {
		b.Run(fmt.Sprint("max=", limit), func(b *testing.B) {
			c := connect(b)
			queue(b, c)
			fill(b, c, b.N, 1)
			done := make(chan struct{}, b.N)
			b.ReportAllocs()
			b.ResetTimer()
			pull(b, c, limit, func(task Task) {
				if err := task.Ack(); err != nil {
					b.Error(err)
				}
				task.Release()
				done <- struct{}{}
			})
			for range b.N {
				<-done
			}
		})
	}
}

// A task that came another way takes a slot like any other, unless a consumer may have one waiting.
func TestAdmit(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		queue(t, c)
		tasks := make(chan Task, 10)
		p := pull(t, c, 2, func(task Task) { tasks <- task })
		time.Sleep(time.Second)
		var taken []Task
		for range 2 {
			task, ok := p.Admit(Msg{Subject: "s.a", Data: []byte("x")})
			if !ok || string(task.Data) != "x" || task.Delivered != 1 || task.Seq != 0 {
				t.Fatalf("got %+v, %t, want a task", task, ok)
			}
			taken = append(taken, task)
		}
		if _, ok := p.Admit(Msg{}); ok || p.Held() != 2 {
			t.Fatalf("got a third task with %d held, want 2 at most", p.Held())
		}
		fill(t, c, 5, 1)
		time.Sleep(10 * time.Millisecond)
		if len(tasks) > 0 {
			t.Fatal("got a task of the queue without a slot")
		}
		taken[0].Release()
		taken[0].Release()
		first := receive(t, tasks)
		taken[1].Release()
		second := receive(t, tasks)
		if err := errors.Join(first.Ack(), second.Ack()); err != nil {
			t.Fatal(err)
		}
		first.Release()
		second.Release()
		for range 3 {
			task := receive(t, tasks)
			finish(t, task)
		}
		time.Sleep(time.Second)
		p.Close()
		if _, ok := p.Admit(Msg{}); ok {
			t.Fatal("took a task for a puller that is closed")
		}
	})
}
