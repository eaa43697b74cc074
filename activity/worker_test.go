package activity_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
)

func TestDrainFinishesWhatRuns(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
			time.Sleep(20 * time.Second)
			return "done", ctx.Err()
		}))
		stop := r.start(w)
		r.dispatch()
		r.dispatch(func(t *schemas.ActivityTask) { t.Token, t.NotIdempotent = "RUN.6.1", true })
		q := r.next(schemas.ReportBegin)
		r.next(schemas.ReportStarted)
		began := time.Now()
		ended := make(chan error, 1)
		go func() { ended <- stop() }()
		time.Sleep(5 * time.Second)
		r.dispatch(func(t *schemas.ActivityTask) { t.Token = "RUN.7.1" }) // after the stop: not taken
		r.next(schemas.ReportBegin)
		// Asked before the stop: the question may have been granted already, so its answer is waited for.
		r.answer(q.ReplyTo, schemas.Permission{Nonce: q.Nonce, Go: true})
		r.next(schemas.ReportSuccess)
		r.next(schemas.ReportSuccess)
		if err := <-ended; err != nil || time.Since(began) > 26*time.Second {
			t.Fatalf("got %v after %v, want a clean end when the last activity ended", err, time.Since(began))
		}
		r.remain("PCI", 1) // the one that was not taken
	})
}

func TestDrainCutsWhatDoesNotEnd(t *testing.T) {
	for _, tc := range []struct {
		name    string
		end     func(ctx context.Context) (string, error)
		success bool
	}{
		{"obeys", func(ctx context.Context) (string, error) { return "", context.Cause(ctx) }, false},
		{"finishes in the last second", func(context.Context) (string, error) { time.Sleep(time.Second / 2); return "done", nil }, true},
		{"does not heed its context", func(context.Context) (string, error) { time.Sleep(5 * time.Minute); return "", nil }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				w := r.worker(func(o *activity.Options) { o.DrainTimeout = 30 * time.Second })
				activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
					<-ctx.Done()
					if cause := context.Cause(ctx); !errors.Is(cause, activity.ErrDrained) {
						t.Errorf("got cause %v, want ErrDrained", cause)
					}
					return tc.end(ctx)
				}))
				stop := r.start(w)
				seq := r.dispatch()
				r.next(schemas.ReportStarted)
				began := time.Now()
				err := stop()
				if tc.success {
					r.next(schemas.ReportSuccess)
					if err != nil {
						t.Fatalf("got %v, want nil", err)
					}
					r.settled("PCI")
					return
				}
				if took := time.Since(began); !errors.Is(err, activity.ErrDrainTimeout) || took < 30*time.Second || took > 31*time.Second {
					t.Fatalf("got %v after %v, want ErrDrainTimeout after 30 to 31 s", err, took)
				}
				if back := r.next(schemas.ReportReturned); back.Token != "RUN.5.1" || back.TaskSequence != seq || back.Nonce == "" || back.at.After(time.Now()) { // R5
					t.Fatalf("the task is given back with %+v at %v, want its token, message and nonce before the worker has stopped", back.Report, back.at)
				}
				other := r.worker()
				activity.Register(other, "work", ignoreIn(func(context.Context) (string, error) { return "done", nil }))
				r.start(other)
				began = time.Now()
				q := r.next(schemas.ReportBegin)
				if wait := q.at.Sub(began); wait > 100*time.Millisecond || !q.Redelivered || q.TaskSequence != seq {
					t.Fatalf("got the question of a redelivery %v after %v, want it at once", q.Redelivered, wait)
				}
				r.answer(q.ReplyTo, schemas.Permission{Nonce: q.Nonce, Go: true, Token: "RUN.5.2", Attempt: 2})
				r.next(schemas.ReportSuccess)
				r.settled("PCI")
				r.quiet(10 * time.Minute) // the abandoned function says nothing more
			})
		})
	}
}

func TestRunAgainAfterADrain(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { return "done", nil }))
		for range 3 {
			stop := r.start(w)
			r.dispatch()
			r.next(schemas.ReportSuccess)
			r.settled("PCI")
			if err := stop(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestConcurrencyIsCapped(t *testing.T) {
	for _, tc := range []struct {
		concurrency int
		lists       []string
		want        map[string]int
	}{
		{7, []string{"PCI"}, map[string]int{"PCI": 7}},
		{7, []string{"PCI", "mail", "pdf"}, map[string]int{"PCI": 3, "mail": 2, "pdf": 2}},
	} {
		t.Run(fmt.Sprintf("%d on %d lists", tc.concurrency, len(tc.lists)), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				const each = 40
				var mu sync.Mutex
				now, most := map[string]int{}, map[string]int{}
				w := r.worker(func(o *activity.Options) { o.Concurrency, o.Lists = tc.concurrency, tc.lists })
				activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
					list := activity.Info(ctx).List
					mu.Lock()
					now[list]++
					most[list] = max(most[list], now[list])
					mu.Unlock()
					time.Sleep(10 * time.Millisecond)
					mu.Lock()
					now[list]--
					mu.Unlock()
					return "", nil
				}))
				for i := range each {
					for _, list := range tc.lists {
						r.dispatch(func(t *schemas.ActivityTask) { t.List, t.Token = list, fmt.Sprintf("%s.%d.1", list, i) })
					}
				}
				r.start(w)
				for range each * len(tc.lists) {
					r.next(schemas.ReportSuccess)
				}
				if diff := cmp.Diff(tc.want, most); diff != "" {
					t.Fatalf("at a time (-want +got):\n%s", diff)
				}
			}, tc.lists[1:]...)
		})
	}
}

func TestListRoutes(t *testing.T) {
	t.Run("S1-41", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			lists := []string{"PCI", "mail"}
			for _, list := range lists {
				w := r.worker(func(o *activity.Options) { o.Lists, o.Identity = []string{list}, "on "+list })
				activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
					if got := activity.Info(ctx).List; got != list {
						t.Errorf("got a task of list %s on a worker of list %s", got, list)
					}
					return list, nil
				}))
				r.start(w)
			}
			for i := range 50 {
				list := lists[i%2]
				r.dispatch(func(t *schemas.ActivityTask) {
					t.List, t.Token, t.Report = list, fmt.Sprintf("%s.%d.1", list, i), ns.ActOutcome(0, workflow, list)
				})
			}
			for range 50 {
				got := r.next(schemas.ReportSuccess)
				list := strings.Trim(string(got.Result), `"`)
				if !strings.HasPrefix(got.Token, list+".") || got.Identity != "on "+list || !strings.HasSuffix(got.subject, ".act."+list) {
					t.Fatalf("got an outcome of %s by %s on %s", got.Token, got.Identity, got.subject)
				}
			}
		}, "mail")
	})
}

// TestListIsOpened has a worker that comes before its list and before the broker.
func TestListIsOpened(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w := r.worker(func(o *activity.Options) { o.Lists = []string{"late"} })
		activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { return "done", nil }))
		r.start(w)
		time.Sleep(time.Minute)
		asked := make(chan string, 100)
		refusals := 2
		sub, err := r.conn.Subscribe(ns.API("tasklist"), "", func(m natsconn.Msg) {
			var req schemas.TaskListRequest
			if err := schemas.Unmarshal(m.Data, &req); err != nil {
				t.Error(err)
			}
			asked <- req.List
			resp := &schemas.TaskListResponse{Stream: ns.StreamTasks(req.List), Consumer: subject.Consumer}
			if refusals > 0 {
				refusals--
				resp.Error = schemas.Errorf(schemas.CodeUnavailable, "not yet")
			}
			body, err := schemas.MarshalJSON(resp)
			if err == nil {
				err = m.Respond(nil, body)
			}
			if err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = sub.Close() })
		for range 3 {
			if got := <-asked; got != "late" {
				t.Fatalf("got a request for %q, want late", got)
			}
		}
		if n := r.logged(logrus.WarnLevel, "the broker refuses to open the task list; trying again"); n != 2 {
			t.Errorf("got %d warnings that the list is refused, want one for each refusal", n)
		}
		r.openList("late")
		time.Sleep(time.Minute)
		r.dispatch(func(t *schemas.ActivityTask) { t.List = "late" })
		r.next(schemas.ReportSuccess)
		if len(asked) > 0 {
			t.Fatalf("got %d requests more, want none once the list is open", len(asked))
		}
	})
}

func TestOptions(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(*activity.Options)
		want string
	}{
		{"no lists", func(o *activity.Options) { o.Lists = nil }, "Lists is empty"},
		{"a bad list", func(o *activity.Options) { o.Lists = []string{"a.b"} }, "Lists"},
		{"a list twice", func(o *activity.Options) { o.Lists = []string{"a", "a"} }, `"a" twice`},
		{"a bad namespace", func(o *activity.Options) { o.Namespace = "a b" }, "Namespace"},
		{"a bad identity", func(o *activity.Options) { o.Identity = "a\n" }, "Identity"},
		{"too few slots", func(o *activity.Options) { o.Lists, o.Concurrency = []string{"a", "b"}, 1 }, "Concurrency is 1 for 2 lists"},
		{"negative slots", func(o *activity.Options) { o.Concurrency = -1 }, "Concurrency"},
		{"negative drain", func(o *activity.Options) { o.DrainTimeout = -1 }, "DrainTimeout"},
		{"negative start", func(o *activity.Options) { o.StartedAfter = -1 }, "StartedAfter"},
		{"lease kept too seldom", func(o *activity.Options) { o.KeepAlive = 6 * time.Second }, "KeepAlive is 6s"},
		{"no connection", func(*activity.Options) {}, "nil connection"},
		{"lease kept too often", func(o *activity.Options) { o.KeepAlive = time.Millisecond }, "KeepAlive is 1ms"},
	} {
		t.Run("bad input: options/"+tc.name, func(t *testing.T) {
			o := &activity.Options{Lists: []string{"a"}}
			tc.edit(o)
			err := activity.New(nil, o).Run(t.Context())
			if !errors.Is(err, activity.ErrInvalidOptions) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want ErrInvalidOptions and %q", err, tc.want)
			}
		})
	}
	if err := activity.New(nil, nil).Run(t.Context()); !errors.Is(err, activity.ErrInvalidOptions) {
		t.Fatalf("got %v, want ErrInvalidOptions", err)
	}
	got := activity.Options{Lists: []string{"a", "b"}, Identity: "me"}.String()
	want := "namespace=default lists=a,b identity=me concurrency=100 drain-timeout=5m0s started-after=50ms keep-alive=3s"
	if got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func TestRunTwiceAtATime(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w := r.worker()
		r.start(w)
		time.Sleep(time.Second)
		if err := w.Run(t.Context()); !errors.Is(err, activity.ErrRunning) {
			t.Fatalf("got %v, want ErrRunning", err)
		}
	})
}

func TestRunOnAClosedConnection(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		conn := r.dial()
		conn.Close()
		err := activity.New(conn, &activity.Options{Lists: []string{"PCI"}}).Run(t.Context())
		if !errors.Is(err, natsconn.ErrClosed) {
			t.Fatalf("got %v, want ErrClosed", err)
		}
	})
}

// So it is when the connection is closed later: a worker that goes on would wait for nothing, and look healthy.
func TestConnectionIsClosedBeneathAWorker(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		conn := r.dial()
		ended := make(chan error, 1)
		w := r.workerOn(conn)
		go func() { ended <- w.Run(t.Context()) }()
		time.Sleep(time.Second)
		conn.Close()
		select {
		case err := <-ended:
			if !errors.Is(err, natsconn.ErrClosed) {
				t.Errorf("got %v, want ErrClosed", err)
			}
		case <-time.After(time.Minute):
			t.Error("Run goes on")
		}
	})
}

func TestRegisterPanics(t *testing.T) {
	fn := func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }
	for _, tc := range []struct {
		name, typ string
		fn        func(context.Context, struct{}) (struct{}, error)
		want      string
	}{
		{"empty type", "", fn, "type is empty"},
		{"control character", "a\nb", fn, "control character"},
		{"nil function", "a", nil, "the function is nil"},
		{"twice", "work", fn, "registered already"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := activity.New(nil, nil)
			activity.Register(w, "work", fn)
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, tc.want) {
					t.Fatalf("got panic %q, want %q", got, tc.want)
				}
			}()
			activity.Register(w, tc.typ, tc.fn)
		})
	}
	t.Run("while it runs", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			w := r.worker()
			r.start(w)
			time.Sleep(time.Second)
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, "register before Run") {
					t.Fatalf("got panic %q, want one about Run", got)
				}
			}()
			activity.Register(w, "late", fn)
		})
	})
}

// A drain that is out of time meets outcomes that cannot be told. Whoever of the two hands their tasks back, the worker counts them all, and has
// nothing more to say once it has stopped.
func TestNothingIsSaidLaterADrain(t *testing.T) {
	const tasks = 20
	bubble(t, func(t *testing.T, r *rig) {
		const given = "the worker stops before the activity has ended; another worker gets the task"
		var told, over atomic.Int64
		r.logger.AddHook(hook(func(e *logrus.Entry) {
			if e.Message == given {
				for range 1000 * told.Add(1) { // a slow terminal; in a bubble no time passes while others wait for a lock
					runtime.Gosched()
				}
				over.Add(1)
			}
		}))
		w, wire := r.cutWorker(func(o *activity.Options) { o.DrainTimeout = time.Second })
		activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { time.Sleep(time.Minute); return "done", nil }))
		stop := r.start(w)
		for n := range tasks {
			r.dispatch(func(t *schemas.ActivityTask) { t.Token = fmt.Sprint("RUN.5.", n) })
			r.next(schemas.ReportStarted)
		}
		wire.Kill()
		time.Sleep(2 * time.Minute)
		err := stop()
		if want := fmt.Sprintf("%d tasks", tasks); !errors.Is(err, activity.ErrDrainTimeout) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want ErrDrainTimeout and %s", err, want)
		}
		if over.Load() != tasks || told.Load() != tasks {
			t.Errorf("of %d tasks that were handed back %d were being told, and %d had been, when the worker had stopped", tasks, told.Load(), over.Load())
		}
	})
}

// hook is called for each entry of a log.
type hook func(*logrus.Entry)

func (h hook) Levels() []logrus.Level { return logrus.AllLevels }

func (h hook) Fire(e *logrus.Entry) error { h(e); return nil }

// What ends a worker takes everything back that it has made on its connection, which may live on: whoever makes workers one after the other keeps none
// of them.
func TestNothingIsKeptOfAWorkerThatEnded(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		conn := r.dial()
		ended := func() weak.Pointer[activity.Worker] {
			w := r.workerOn(conn, func(o *activity.Options) { o.Lists = []string{"PCI", "VISA"} })
			activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { return "done", nil }))
			stop := r.start(w)
			time.Sleep(time.Second)
			r.offer()
			r.next(schemas.ReportSuccess)
			r.dispatch()
			r.next(schemas.ReportSuccess)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			return weak.Make(w)
		}()
		poll.Until(t, time.Minute, "its connection does not keep it", func() bool { runtime.GC(); return ended.Value() == nil })
	}, "VISA")
}
