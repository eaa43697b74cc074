package activity_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// A worker of a namespace that nobody serves, such as one that is misspelled, says so once, and not while a server begins.
func TestNobodyOpensTheList(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		log, kept := logtest.NewNullLogger()
		c, err := drover.Connect(t.Context(), &drover.Options{Conn: e.Client.NATS(), Namespace: "nobody", Logger: log})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		w := c.Activities(&activity.Options{Lists: []string{"words"}})
		activity.Register(w, "t", func(context.Context, string) (string, error) { return "", nil })
		e.Go(w)
		warnings := func() (n int) {
			for _, entry := range kept.AllEntries() {
				if entry.Level == logrus.WarnLevel {
					n++
				}
			}
			return n
		}
		time.Sleep(2 * time.Second)
		if n := warnings(); n != 0 {
			t.Errorf("got %d warnings after two seconds, want none", n)
		}
		time.Sleep(time.Minute)
		if n := warnings(); n != 1 {
			t.Errorf("got %d warnings after a minute, want one: %v", n, kept.AllEntries())
		}
	})
}

// A worker that is connected to another JetStream domain than the servers, as to a leaf node, has its list opened and finds none. It says so, and what to do.
func TestListIsInAnotherDomain(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		defer r.answerTaskLists("PCI", func() {})()
		conn, err := natsconn.Dial(t.Context(), natsconn.Options{InProcess: r.server.Conn(), APIPrefix: "$JS.leaf.API"})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		w := r.workerOn(conn)
		activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { return "done", nil }))
		stop := r.start(w)
		defer func() { _ = stop() }()
		told := func() (n int) {
			for _, entry := range r.log.AllEntries() {
				if entry.Level == logrus.WarnLevel && strings.Contains(entry.Message, "Options.APIPrefix") {
					n++
				}
			}
			return n
		}
		time.Sleep(12 * time.Second) // after an election, or a consumer that is gone, the list is opened anew
		if n := told(); n != 0 {
			t.Errorf("got %d warnings after 12 seconds, want none", n)
		}
		time.Sleep(2 * time.Minute)
		if n := told(); n != 1 {
			t.Errorf("got %d warnings after two minutes, want one", n)
		}
	})
}

// A consumer that somebody deletes while workers wait there is made again, and they go on.
func TestListIsOpenedAgain(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		d := e.Client.Deciders(nil)
		d.Register("count", decider.Func(func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
			v, err := task.View(ctx)
			switch done, _, _ := v.Activity("a"); {
			case err != nil:
				return nil, err
			case done == 0:
				return []schemas.Decision{decider.Schedule("a", "count", "x", decider.List("words"))}, nil
			case done == decider.ActivitySucceeded:
				return []schemas.Decision{decider.Complete(nil)}, nil
			}
			return nil, nil
		}))
		w := e.Client.Activities(&activity.Options{Lists: []string{"words"}})
		activity.Register(w, "count", func(context.Context, string) (int, error) { return 1, nil })
		e.Go(d, w)
		time.Sleep(time.Second)
		if err := natsconn.Of(e.Client).JetStream().DeleteConsumer(t.Context(), subject.Namespace("default").StreamTasks("words"), topology.Consumer); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		run, err := e.Client.Start(ctx, "count", "x", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Result(ctx, nil); err != nil {
			t.Fatal(err)
		}
	})
}

// Each list of a worker is opened, and again after a reconnect, and none of them is taken from after its end.
func TestWorkerOfTwoLists(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var mu sync.Mutex
		asked := map[string]int{}
		if _, err := r.conn.Subscribe(ns.API("tasklist"), "", func(m natsconn.Msg) {
			var q schemas.TaskListRequest
			if err := schemas.Unmarshal(m.Data, &q); err != nil {
				t.Error(err)
			}
			mu.Lock()
			asked[q.List]++
			mu.Unlock()
			if err := m.Respond(nil, []byte("{}")); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
		conn := r.dial()
		stop := r.start(r.workerOn(conn, func(o *activity.Options) { o.Lists = []string{"PCI", "VISA"} }))
		time.Sleep(time.Second)
		if err := conn.NATS().ForceReconnect(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		mu.Lock()
		if asked["PCI"] != 2 || asked["VISA"] != 2 {
			t.Errorf("the lists were opened so often: %v; want twice each", asked)
		}
		mu.Unlock()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		for _, list := range []string{"PCI", "VISA"} {
			r.put(list, []byte("{}"))
			time.Sleep(time.Second)
			c, err := r.conn.JetStream().Consumer(t.Context(), ns.StreamTasks(list), subject.Consumer)
			if err != nil {
				t.Fatal(err)
			}
			if n := c.CachedInfo().Delivered.Consumer; n != 0 {
				t.Errorf("list %s: %d deliveries after the end of its worker, want none", list, n)
			}
		}
	}, "VISA")
}

// answerTaskLists plays the broker that opens list for workers, by open. What it returns ends that.
func (r *rig) answerTaskLists(list string, open func()) (end func()) {
	r.t.Helper()
	sub, err := r.conn.Subscribe(ns.API("tasklist"), "", func(m natsconn.Msg) {
		open()
		body, err := schemas.MarshalJSON(&schemas.TaskListResponse{Stream: ns.StreamTasks(list), Consumer: subject.Consumer})
		if err == nil {
			err = m.Respond(nil, body)
		}
		if err != nil {
			r.t.Error(err)
		}
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return func() { _ = sub.Close() }
}
