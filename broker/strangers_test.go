package broker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// A process of a rolling update: it knows one type of activities and one of workflows, and shares the list with others.
func (f *fleet) version(name, activityType, workflowType string) (stop func()) {
	f.t.Helper()
	conn, err := natsconn.Dial(context.Background(), natsconn.Options{InProcess: f, Name: name, Logger: f.log})
	if err != nil {
		f.t.Fatal(err)
	}
	w := activity.New(conn, &activity.Options{Identity: name, Logger: f.log, Lists: []string{"main"}, DrainTimeout: time.Second})
	activity.Register(w, activityType, func(context.Context, any) (string, error) { return name, nil })
	d := decider.New(conn, &decider.Options{Identity: name, Logger: f.log, DrainTimeout: time.Second})
	d.Register(workflowType, decider.Func(func(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
		v, err := t.View(ctx)
		if err != nil {
			return nil, err
		}
		for n := range 3 {
			if id := fmt.Sprint("a", n); !v.Done(id) {
				return []schemas.Decision{decider.Schedule(id, activityType, nil, decider.List("main"))}, nil
			}
		}
		return []schemas.Decision{decider.Complete("done")}, nil
	}))
	activities, deciders := f.employs(w.Run), f.employs(d.Run)
	return sync.OnceFunc(func() { _ = activities(); _ = deciders(); conn.Close() })
}

// A task reaches the idle worker that knows its type at once, whoever else waits for tasks of the list.
func TestTasksReachWhoKnowsTheirType(t *testing.T) { // R6
	for name, tt := range map[string]struct {
		strangers int
		inJSON    int // of them, those that hand back without a delay, in another language
	}{
		"one other": {1, 0}, "seven others": {7, 0}, "others in other languages": {6, 3},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				var stops []func()
				for n := range tt.strangers - tt.inJSON {
					stops = append(stops, f.version(fmt.Sprint("old", n), "old", "old"))
				}
				stops = append(stops, f.version("new", "new", "new"))
				time.Sleep(time.Second) // the list is made
				for range tt.inJSON {
					stops = append(stops, f.naks())
				}
				time.Sleep(time.Second) // all of them wait
				for n := range 5 {
					id := fmt.Sprint("w", n)
					began := time.Now()
					f.start(fmt.Sprintf(`{"workflowId":%q,"type":"new"}`, id))
					f.completes(id)
					if took := time.Since(began); took > time.Second {
						t.Errorf("workflow %s took %v beside an idle worker that knows its types, want less than a second", id, took)
					}
				}
				for _, stop := range stops {
					stop()
				}
			})
		})
	}
}

// naks is a worker in another language that knows no type, and hands back at once.
func (f *fleet) naks() (stop func()) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	subject := "$JS.API.CONSUMER.MSG.NEXT." + ns.StreamTasks("main") + "." + topology.Consumer
	done.Go(func() {
		for ctx.Err() == nil {
			m, err := f.nc.RequestWithContext(ctx, subject, []byte(`{"batch":1,"expires":20000000000}`))
			if err != nil || m.Reply == "" {
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
				continue
			}
			if err := f.nc.PublishMsg(&nats.Msg{Subject: m.Reply, Data: []byte("-NAK")}); err != nil {
				f.t.Error(err)
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

// A worker that comes finds the tasks that nobody there knew within seconds, however long they have waited.
func TestTasksWaitForWhoKnowsTheirType(t *testing.T) { // R6
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		old := []func(){f.version("old1", "old", "old"), f.version("old2", "old", "old")}
		f.decider("order", one(""))
		time.Sleep(time.Second)
		f.start(startO)
		time.Sleep(10 * time.Minute)
		began := time.Now()
		fresh := f.version("new", "work", "new")
		f.completes("o")
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %v from the start of the worker, want seconds", took)
		}
		for _, stop := range append(old, fresh) {
			stop()
		}
	})
}
