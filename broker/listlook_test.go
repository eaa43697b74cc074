package broker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

// priorities are those of the tasks that each consumer of a list gives.
var priorities = map[string]int{subject.ConsumerHigh: 1, subject.Consumer: 0, subject.ConsumerLow: -1}

// listed schedules an activity of a priority, and with each signal another.
func listed(priority int) func(*decisionTask) string {
	return func(d *decisionTask) string {
		return "[" + scheduleActivity(fmt.Sprint("a", d.StartedID), fmt.Sprintf(`,"taskPriority":%d`, priority)) + "]"
	}
}

// hands waits until a consumer of list main hands out a task, as a worker does with plain NATS; false if none does within the time.
func (f *fleet) hands(consumer string, wait time.Duration) bool {
	f.t.Helper()
	for end := time.Now().Add(wait); time.Now().Before(end); time.Sleep(time.Second) {
		c, err := f.js.Consumer(f.t.Context(), ns.StreamTasks("main"), consumer)
		if err != nil {
			continue
		}
		batch, err := c.Fetch(1, jetstream.FetchMaxWait(time.Second))
		if err != nil {
			f.t.Fatal(err)
		}
		for range batch.Messages() {
			return true
		}
	}
	return false
}

// missing are the consumers of list main that the API says are not there.
func (f *fleet) missing() (names []string) {
	f.t.Helper()
	for _, l := range f.lists() {
		names = append(names, l.Missing...)
	}
	return names
}

// E2: a consumer of a list is deleted while a worker waits that uses plain NATS. It is made anew after the next task, whoever owns the partition by then, and
// after a question how the list or a run stands; the answer names it.
func TestDeletedConsumerIsMadeAnew(t *testing.T) {
	ways := map[string]func(*testing.T, *fleet, *node, string){
		"a task": func(t *testing.T, f *fleet, _ *node, _ string) { f.publish("drover.default.signal.o.s", "") },
		"a task after a restart": func(t *testing.T, f *fleet, a *node, _ string) {
			a.stop()
			f.node("b", nil)
			f.publish("drover.default.signal.o.s", "")
		},
		"lists": func(t *testing.T, f *fleet, _ *node, consumer string) {
			if got := f.missing(); !slices.Equal(got, []string{consumer}) {
				t.Errorf("missing are %v, want %s", got, consumer)
			}
			time.Sleep(time.Second)
			if got := f.missing(); len(got) > 0 {
				t.Errorf("missing are %v after the first question", got)
			}
		},
		"lists after a restart": func(t *testing.T, f *fleet, a *node, consumer string) {
			a.stop()
			f.node("b", nil)
			time.Sleep(time.Second)
			if got := f.missing(); !slices.Equal(got, []string{consumer}) {
				t.Errorf("missing are %v, want %s", got, consumer)
			}
		},
		"why": func(t *testing.T, f *fleet, _ *node, consumer string) {
			if got := f.why("o"); !strings.Contains(got, "; the consumer "+consumer+" of the list is not there") {
				t.Errorf("why says %q", got)
			}
		},
	}
	for consumer, priority := range priorities {
		for name, way := range ways {
			if consumer != subject.Consumer && name != "a task" {
				continue // all are looked after in one way
			}
			t.Run(consumer+"/"+name, func(t *testing.T) {
				virtually(t, 1, func(t *testing.T, f *fleet) {
					kept := logtest.NewLocal(f.log)
					f.decider("order", listed(priority))
					a := f.node("a", nil)
					f.start(startO)
					f.await("o", schemas.EventActivityScheduled)
					time.Sleep(2 * time.Minute)
					if err := f.js.DeleteConsumer(t.Context(), ns.StreamTasks("main"), consumer); err != nil {
						t.Fatal(err)
					}
					way(t, f, a, consumer)
					if !f.hands(consumer, time.Minute) {
						t.Fatal("the task goes to nobody")
					}
					if n := deletions(kept); n != 1 {
						t.Errorf("it is told %d times that a consumer was deleted, want once", n)
					}
				})
			})
		}
	}
}

// deletions is how often a log tells that consumers were deleted.
func deletions(kept *logtest.Hook) (n int) {
	for _, e := range kept.AllEntries() {
		if strings.Contains(e.Message, "deleted consumers") {
			n++
		}
	}
	return n
}

// A list that is being made lacks consumers, too. Nobody is told that they were deleted, in whichever order it gets them, and whoever looks meanwhile.
func TestNewListLacksNothing(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		kept := logtest.NewLocal(f.log)
		f.node("a", nil)
		f.decider("order", listed(0))
		f.start(startO)
		f.api("lists", "{}")
		f.await("o", schemas.EventActivityScheduled)
		for range 100 {
			if got := f.missing(); len(got) > 0 {
				t.Fatalf("missing are %v of a list that is new", got)
			}
			time.Sleep(500 * time.Millisecond)
		}
		// Somebody makes another one, and has come to its stream.
		if err := topology.EnsureList(t.Context(), f.post, ns, "other", topology.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, c := range subject.Consumers() {
			if err := f.js.DeleteConsumer(t.Context(), ns.StreamTasks("other"), c); err != nil {
				t.Fatal(err)
			}
		}
		if got := f.missing(); len(got) > 0 {
			t.Errorf("missing are %v of a list that is being made", got)
		}
		if n := deletions(kept); n > 0 {
			t.Errorf("it is told %d times that consumers were deleted", n)
		}
		// Whoever did so has died. A minute later that is told, and mended.
		time.Sleep(2 * time.Minute)
		if got := f.missing(); len(got) != 3 {
			t.Errorf("missing are %v, want all", got)
		}
		time.Sleep(time.Minute)
		if got := f.missing(); len(got) > 0 {
			t.Errorf("missing are %v still", got)
		}
	})
}
