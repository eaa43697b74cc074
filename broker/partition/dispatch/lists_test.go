package dispatch_test

import (
	"errors"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// Why a list cannot be made is known for as long as somebody tries. Its tasks wait, and come to it
// once when it can.
func TestListThatCannotBeMade(t *testing.T) { // P-1
	virtual.Run(t, func(t *testing.T) {
		var refusal error
		k := newRig(t, env.Options{Expendable: func(string) error { return refusal }})
		refusal = errors.New("no room on disk")
		var done [2]*bool
		k.do(func() {
			for i := range done {
				r, a := scheduled("main")
				done[i] = held(func(c *watermark.Completion) { k.Task(r, a, c, true, false) })
			}
			if !k.Busy() {
				t.Error("not busy while tasks are on their way")
			}
		})
		k.do(func() {
			if err := k.ListRefusal("main"); !errors.Is(err, refusal) || k.ListRefusal("other") != nil {
				t.Errorf("main is refused for %v, another one for %v",
					err, k.ListRefusal("other"))
			}
			if *done[0] || *done[1] {
				t.Error("the effect of a task that is nowhere is done")
			}
			refusal = nil
		})
		time.Sleep(10 * time.Second)
		k.do(func() {
			tasks := k.stored("main")
			if len(tasks) != len(done) || !*done[0] || !*done[1] || k.Busy() {
				t.Errorf("%d tasks are stored, want each of %d once; done: %t, %t, busy: %t",
					len(tasks), len(done), *done[0], *done[1], k.Busy())
			}
			if err := k.ListRefusal("main"); err != nil {
				t.Errorf("a list that is there is refused: %v", err)
			}
		})
	})
}

// The refusal of a list for which nobody has a task any more is forgotten.
func TestOldRefusalIsForgotten(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		refuse := func(string) error { return errors.New("no room on disk") }
		k := newRig(t, env.Options{Expendable: refuse})
		r, a := scheduled("main")
		k.do(func() { k.Task(r, a, nil, true, false) })
		k.do(func() {
			if k.ListRefusal("main") == nil {
				t.Error("the list is not refused")
			}
			k.host.canWrite = false // so that nobody tries again
		})
		time.Sleep(5 * time.Minute)
		k.do(func() {
			if err := k.ListRefusal("main"); err != nil {
				t.Errorf("still refused: %v", err)
			}
		})
	})
}

// A list that lacks consumers is made whole before the recovery is over: the owner before has died
// while it made it. A list that nobody has made is left to whoever puts a task there.
func TestListOfAnOwnerThatDied(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		k := newRig(t, env.Options{})
		stream := k.Env.NS.StreamTasks("main")
		if err := k.Env.EnsureList(t.Context(), "main"); err != nil {
			t.Fatal(err)
		}
		consumers := func() []string {
			all, err := k.Env.Reads.Consumers(t.Context(), stream)
			if err != nil {
				t.Fatal(err)
			}
			return env.Lacking(all)
		}
		js := k.Env.Conn.JetStream()
		if err := js.DeleteConsumer(t.Context(), stream, "workers"); err != nil {
			t.Fatal(err)
		}
		if len(consumers()) == 0 {
			t.Fatal("the list is whole")
		}
		for _, list := range []string{"main", "missing"} {
			r, _ := scheduled(list)
			var done *bool
			k.do(func() {
				done = held(func(c *watermark.Completion) {
					k.EnsureConsumers(r, execution.Dispatch{ScheduledID: 5}, c)
				})
				if *done {
					t.Errorf("%s: the recovery is over before the list was looked at", list)
				}
			})
			if k.rest(time.Second); !*done {
				t.Errorf("%s: the recovery waits for ever", list)
			}
		}
		if lacks := consumers(); len(lacks) > 0 {
			t.Errorf("the list still lacks %v", lacks)
		}
		if _, err := js.Stream(t.Context(), k.Env.NS.StreamTasks("missing")); err == nil {
			t.Error("a list without a task was made")
		}
	})
}

// A worker that does not say that it is at an attempt loses it. Whoever asks several times at once
// is told once.
func TestWorkerIsAskedForItsAttempt(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		for worker, want := range map[string]int{"at-work": 0, "gone": 1, "at-another": 1} {
			k := newRig(t, env.Options{})
			if worker != "gone" {
				answers(t, k, worker, worker == "at-work")
			}
			r, _ := scheduled("main")
			k.do(func() {
				q := execution.Inquire{ScheduledID: 5, Attempt: 1, Worker: worker, Token: "t"}
				for range 2 {
					k.Inquire(r, q)
				}
			})
			time.Sleep(time.Minute)
			k.do(func() {
				if got := k.host.delivered; len(got) != want {
					t.Fatalf("%s: delivered %v, want %d", worker, got, want)
				}
				for _, e := range k.host.delivered {
					if e != (execution.Gone{Run: "r1", ScheduledID: 5, Attempt: 1}) {
						t.Errorf("%s: delivered %+v", worker, e)
					}
				}
			})
		}
	})
}

// answers has a worker answer questions about its attempts.
func answers(t *testing.T, k *rig, worker string, holds bool) {
	t.Helper()
	body, err := schemas.MarshalJSON(&schemas.ControlAnswer{V: schemas.Version, Holds: holds})
	if err != nil {
		t.Fatal(err)
	}
	sub, err := k.Env.Conn.Subscribe(k.Env.NS.Control(worker), "", respond(t, body))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Close() })
}
