package broker_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/schemas"
)

// A task says when its decision started, to the instant that the history has, whether the event is in the window or not, and
// whether it was written before the task was sent or after.
func TestTasksSayWhenTheyStarted(t *testing.T) {
	const large = 60 // signals of 50 kB, which no task has room for
	for name, c := range map[string]struct {
		signals int
		waits   time.Duration // until somebody listens
		takes   time.Duration // a decision
		fails   int           // answers before the last
		dies    bool          // the owner, with the first decision under way
		tasks   int
	}{
		"answered at once":                {tasks: 1},
		"answered in a while":             {takes: 3 * time.Second, tasks: 1},
		"nobody listened":                 {waits: 10 * time.Minute, tasks: 1},
		"after failures":                  {fails: 2, tasks: 3},
		"paged":                           {signals: large, waits: time.Minute, tasks: 1},
		"paged, in a while":               {signals: large, waits: time.Minute, takes: 3 * time.Second, tasks: 1},
		"asked by the next owner":         {dies: true, tasks: 3},
		"paged, asked by the next owner":  {signals: large, waits: time.Minute, dies: true, tasks: 3},
		"asked by the next owner at last": {dies: true, takes: 3 * time.Second, fails: 1, tasks: 3},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				a := f.node("a", nil)
				f.start(`{"workflowId":"o","type":"order","taskStartToCloseTimeout":60}`)
				for range c.signals {
					f.publish(ns.Signal("o", "s"), `"`+strings.Repeat("x", 50_000)+`"`)
				}
				time.Sleep(c.waits)
				var mu sync.Mutex
				var tasks []schemas.DecisionTask
				fails := c.fails
				hung := make(chan struct{}, 1)
				_, err := f.nc.QueueSubscribe(ns.Decide("order"), "deciders", func(m *nats.Msg) {
					var d schemas.DecisionTask
					if err := schemas.Unmarshal(m.Data, &d); err != nil {
						t.Error(err)
					}
					mu.Lock()
					tasks = append(tasks, d)
					n := len(tasks)
					mu.Unlock()
					if c.dies && n == 1 {
						hung <- struct{}{}
						return
					}
					time.Sleep(c.takes)
					answer := `{"token":"` + d.Token + `","decisions":` + complete + `}`
					if fails > 0 {
						fails--
						answer = `{"token":"` + d.Token + `","error":{"reason":"not yet"}}`
					}
					if err := m.Respond([]byte(answer)); err != nil {
						t.Error(err)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				f.flush()
				if err := f.nc.Publish(ns.Announce("order"), nil); err != nil {
					t.Fatal(err)
				}
				if c.dies {
					<-hung
					f.await("o", schemas.EventDeciderStarted)
					time.Sleep(5 * time.Second)
					a.kill()
					f.node("b", nil)
					f.publish(ns.Signal("o", "look"), "1") // the owner meets the run, and its close waits for one more decision
				}
				f.completes("o")
				history := f.events("o")
				mu.Lock()
				defer mu.Unlock()
				if len(tasks) != c.tasks {
					t.Errorf("the decider was asked %d times, want %d", len(tasks), c.tasks)
				}
				if paged := tasks[0].More; paged != (c.signals > 0) {
					t.Errorf("the first task is paged: %v", paged)
				}
				if c.dies && tasks[1].StartedID != tasks[0].StartedID {
					t.Errorf("the next owner asked for decision %d, want %d again", tasks[1].StartedID, tasks[0].StartedID)
				}
				for i, d := range tasks {
					if e := history[d.StartedID-1]; e.Type() != schemas.EventDeciderStarted || e.Time != d.StartedAt {
						t.Errorf("task %d has started at %v, and event %d is %s of %v", i+1, d.StartedAt.Time(), e.ID, e.Type(), e.Time.Time())
					}
				}
			})
		})
	}
}
