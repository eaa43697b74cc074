package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/e2e/load"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// traffic is clients that never pause for long: for each partition one starts workflows, one signals a workflow that stays
// open, one describes it. No call may fail. Each of them has a connection of its own, as separate programs have.
type traffic struct {
	w     *world
	every time.Duration
	loads []load.Input // taken in turn
	ids   []string     // the workflow that stays open, by partition

	mu    sync.Mutex
	calls []clientCall
	jobs  []job          // acknowledged
	pokes map[string]int // acknowledged signals, by workflow id

	stop func()
	wg   sync.WaitGroup
}

type job struct {
	run  *drover.Run
	load load.Input
}

// clientCall is one call of a client.
type clientCall struct {
	verb      string
	partition int
	began     time.Time
	took      time.Duration
	err       error
}

// newTraffic begins the traffic for so many partitions.
func newTraffic(w *world, partitions int, every time.Duration, loads ...load.Input) *traffic {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	f := &traffic{w: w, every: every, loads: loads, pokes: map[string]int{}, ids: make([]string, partitions), stop: stop}
	w.t.Cleanup(func() { stop(); f.wg.Wait() })
	for i := 0; slices.Contains(f.ids, ""); i++ {
		id := fmt.Sprintf("open-%d", i)
		if n := subject.Partition(id, partitions); f.ids[n] == "" {
			f.ids[n] = id
			w.start(load.Type, id, load.Input{Signals: 1 << 30}, startOptions{})
		}
	}
	for n, id := range f.ids {
		starter, signaler, viewer := f.connect("starter"), f.connect("signaler"), f.connect("viewer")
		open := viewer.Run(id, "")
		serial := 0
		f.repeat(ctx, "start", n, func(ctx context.Context) error {
			var id string
			for id == "" || subject.Partition(id, partitions) != n {
				serial++
				id = fmt.Sprintf("job-%d-%d", n, serial)
			}
			l := f.loads[serial%len(f.loads)]
			run, err := starter.Start(ctx, load.Type, l, &drover.StartOptions{ID: id})
			if err == nil {
				f.mu.Lock()
				f.jobs = append(f.jobs, job{run, l})
				f.mu.Unlock()
			}
			return err
		})
		f.repeat(ctx, "signal", n, func(ctx context.Context) error {
			err := signaler.Run(id, "").Signal(ctx, load.Poke, nil)
			if err == nil {
				f.mu.Lock()
				f.pokes[id]++
				f.mu.Unlock()
			}
			return err
		})
		f.repeat(ctx, "describe", n, func(ctx context.Context) error {
			_, err := open.Describe(ctx)
			return err
		})
	}
	return f
}

func (f *traffic) connect(name string) *drover.Client {
	f.w.t.Helper()
	c, err := drover.Connect(f.w.t.Context(), &drover.Options{URL: f.w.url, Timeout: patience, Name: name})
	if err != nil {
		f.w.t.Fatal(err)
	}
	f.w.t.Cleanup(c.Close)
	return c
}

// repeat calls again and again until the traffic ends. A call that has begun is always brought to its end.
func (f *traffic) repeat(ctx context.Context, verb string, partition int, call func(context.Context) error) {
	f.wg.Go(func() {
		tick := time.NewTicker(f.every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			began := time.Now()
			one, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
			err := call(one)
			cancel()
			f.mu.Lock()
			f.calls = append(f.calls, clientCall{verb, partition, began, time.Since(began), err})
			f.mu.Unlock()
		}
	})
}

// slowest is the slowest call that overlaps a span of time, and how many there were.
func (f *traffic) slowest(from, to time.Time) (slow clientCall, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if c.began.After(to) || c.began.Add(c.took).Before(from) {
			continue
		}
		if n++; c.took > slow.took {
			slow = c
		}
	}
	return slow, n
}

// end is finish for stops that were all planned: besides, every activity has run once and as its first attempt, every decision
// was made once, and no history tells of an interruption or of a decision that came too late.
func (f *traffic) end(n notes) {
	t := f.w.t
	t.Helper()
	steps := f.finish()
	f.unharmed()
	n.once(t, steps)
}

// finish stops the traffic and checks it all: no call has failed, every workflow that was started has completed, every signal
// is in its history once, and drover verify is content. It returns how many activities there were.
func (f *traffic) finish() (steps int) {
	t := f.w.t
	t.Helper()
	f.stop()
	f.wg.Wait()
	for _, c := range f.calls {
		if c.err != nil {
			t.Errorf("%s on partition %d failed after %v: %v", c.verb, c.partition, c.took, c.err)
		}
	}
	for _, j := range f.jobs {
		f.w.completes(j.run, j.load.Want())
		steps += j.load.Steps
	}
	for _, id := range f.ids {
		got := 0
		poll.Until(t, patience, "every acknowledged signal of "+id+" is in its history", func() bool {
			got = 0
			for _, e := range f.w.events(f.w.client.Run(id, "")) {
				if e.Type() == schemas.EventSignal {
					got++
				}
			}
			return got >= f.pokes[id]
		})
		if got != f.pokes[id] {
			t.Errorf("%s has %d signals, want the %d that were acknowledged", id, got, f.pokes[id])
		}
	}
	f.w.verify()
	t.Logf("%d calls, %d workflows, %d activities", len(f.calls), len(f.jobs), steps)
	return steps
}

// unharmed reads every history for what a planned stop must not cause.
func (f *traffic) unharmed() {
	t := f.w.t
	t.Helper()
	ctx, cancel := f.w.bounded()
	defer cancel()
	for n := 0; ; n++ {
		err := natsconn.Of(f.w.client).Scan(ctx, namespace.StreamHistory(n), natsconn.ReadOptions{FilterSubjects: []string{namespace.AllRuns(n)}}, func(m natsconn.Stored) error {
			var r schemas.Record
			if err := schemas.Unmarshal(m.Data, &r); err != nil {
				return err
			}
			for _, e := range r.Events {
				switch e.Attributes.(type) {
				case *schemas.ActivityInterrupted, *schemas.DeciderTimedOut, *schemas.DeciderFailed, *schemas.ActivityTimedOut, *schemas.ActivityFailed:
					t.Errorf("%s run %s: event %d is %s", r.WorkflowID, r.Run, e.ID, e.Type())
				}
			}
			return nil
		})
		if errors.Is(err, natsconn.ErrNoStream) && n > 0 {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// notes are the folders in which slow workers and deciders note what they do, in a file for each thing.
type notes struct{ activities, decisions string }

func newNotes(w *world) notes {
	w.t.Helper()
	n := notes{filepath.Join(w.dir, "activities"), filepath.Join(w.dir, "decisions")}
	for _, dir := range []string{n.activities, n.decisions} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			w.t.Fatal(err)
		}
	}
	return n
}

func (n notes) worker(w *world) *process {
	w.t.Helper()
	return asRole(w.t, w.dir, "slow-worker", map[string]string{envURL: w.url, envDir: n.activities})
}

func (n notes) decider(w *world) *process {
	w.t.Helper()
	return asRole(w.t, w.dir, "slow-decider", map[string]string{envURL: w.url, envDir: n.decisions})
}

// once checks the notes: so many activities have run, each of them once and as its first attempt. No decision was made twice
// either, but where a decider was silent for the quarter of a second after which a new owner asks again: one of a hundred, on a
// machine that is busy.
func (n notes) once(t *testing.T, activities int) {
	t.Helper()
	done, twice := n.read(t, n.activities)
	if len(done) != activities {
		t.Errorf("%d activities have run, want %d", len(done), activities)
	}
	for _, what := range twice {
		t.Errorf("activity %s", what)
	}
	if done, twice = n.read(t, n.decisions); len(twice) > len(done)/100 {
		t.Errorf("%d decisions of %d:\n%s", len(twice), len(done), strings.Join(twice, "\n"))
	}
}

// read returns the files of a folder, and those of them that do not tell of one first attempt, with what they tell.
func (n notes) read(t *testing.T, dir string) (files []os.DirEntry, others []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if text := string(b); strings.Count(text, "\n") != 1 || !strings.Contains(text, " attempt 1\n") {
			others = append(others, fmt.Sprintf("%s was not done once, as attempt 1:\n%s", file.Name(), b))
		}
	}
	return files, others
}

// slowWorkerRole does the activities of the load in 20 to 200 ms.
func slowWorkerRole(ctx context.Context) error {
	c, err := connectRole(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	w := c.Activities(&activity.Options{Lists: []string{load.List}})
	activity.Register(w, "square", func(ctx context.Context, n int) (int, error) {
		i := activity.Info(ctx)
		if err := note(os.Getenv(envDir), i.Run+"."+i.ActivityID, i.Attempt); err != nil {
			return 0, err
		}
		return n * n, sleep.For(ctx, 20*time.Millisecond+rand.N(180*time.Millisecond))
	})
	return w.Run(ctx)
}

// slowDeciderRole decides over the load in 5 to 50 ms, and now and then in half a second.
func slowDeciderRole(ctx context.Context) error {
	c, err := connectRole(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	w := c.Deciders(nil)
	w.Register(load.Type, decider.Func(func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
		what := fmt.Sprintf("%s.%d", task.Execution().Run, task.StartedID())
		if err := note(os.Getenv(envDir), what, task.Attempt()); err != nil {
			return nil, err
		}
		thinks := 5*time.Millisecond + rand.N(45*time.Millisecond)
		if rand.IntN(10) == 0 {
			thinks = 500 * time.Millisecond
		}
		if err := sleep.For(ctx, thinks); err != nil {
			return nil, err
		}
		return load.Decide(ctx, task)
	}))
	return w.Run(ctx)
}
