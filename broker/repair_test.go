package broker_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// A server may lose what it had not synced of tasks and alarms while the checkpoint that counts them as stored survives.
// The next owner notices, by the end of the alarms or by the name of the server, and every open run gets its task and its
// alarm again.
func TestLostTasksAndAlarms(t *testing.T) { // P-8
	for name, lose := range map[string]func(*fleet){
		"the alarms end too early": func(f *fleet) { f.truncate(ns.StreamAlarms(0), 0) },
		"another server, whose alarms have the same numbers": func(f *fleet) {
			f.truncate(ns.StreamAlarms(0), 100)
			f.checkpoint(func(c *schemas.Checkpoint) { c.Server = "the one before" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				first := f.node("a", nil)
				f.decider("sleep", sleeper)
				f.decider("order", one(""))
				f.start(startO)
				f.start(`{"workflowId":"s","type":"sleep"}`)
				f.await("o", schemas.EventActivityScheduled)
				f.await("s", schemas.EventTimerScheduled)
				time.Sleep(10 * time.Second) // the alarms are armed and the checkpoint has passed them
				first.stop()
				if err := f.js.DeleteStream(t.Context(), ns.StreamTasks("main")); err != nil {
					t.Fatal(err)
				}
				lose(f)
				f.node("b", nil)
				f.pull().success()
				f.completes("o")
				f.completes("s")
				f.wantTypes("o", oneActivity...)
			})
		})
	}
}

// A server may lose the first record of a run that follows another, and the checkpoint has passed both. The next owner begins it
// again, although nobody asks for it; of the runs before it only the last owes anything.
func TestLostFollower(t *testing.T) { // P-4, P-8
	virtually(t, 1, func(t *testing.T, f *fleet) {
		first := f.node("a", nil)
		begun := 0
		f.decider("order", func(*decisionTask) string {
			if begun++; begun <= 3 {
				return `[{"type":"ContinueAsNew"}]`
			}
			return "[]"
		})
		f.start(startO)
		time.Sleep(10 * time.Second)
		first.stop()
		runs := f.subjects()
		if len(runs) != 4 {
			t.Fatalf("got the runs %v, want 4", runs)
		}
		history, err := f.js.Stream(t.Context(), ns.StreamHistory(0))
		if err != nil {
			t.Fatal(err)
		}
		if err := history.Purge(t.Context(), jetstream.WithPurgeSubject(runs[3])); err != nil {
			t.Fatal(err)
		}
		f.checkpoint(func(c *schemas.Checkpoint) { c.Server = "the one before" })
		f.node("b", nil)
		time.Sleep(10 * time.Second)
		if diff := cmp.Diff(runs, f.subjects()); diff != "" {
			t.Fatalf("the runs of the chain (-before +after):\n%s", diff)
		}
	})
}

// subjects are those of the runs of partition 0, in the order in which they began.
func (f *fleet) subjects() (all []string) {
	f.t.Helper()
	err := f.post.Scan(f.t.Context(), ns.StreamHistory(0), natsconn.ReadOptions{FilterSubjects: []string{ns.AllRuns(0)}}, func(m natsconn.Stored) error {
		if !slices.Contains(all, m.Subject) {
			all = append(all, m.Subject)
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

// A server that was killed may come back with an alarm that its owner had deleted when the run closed. The next owner deletes
// it again; it would ring in vain, in a year.
func TestAlarmOfAClosedRunComesBack(t *testing.T) { // I15
	virtually(t, 1, func(t *testing.T, f *fleet) {
		first := f.node("a", nil)
		f.decider("order", func(*decisionTask) string { return complete })
		f.start(startO)
		f.completes("o")
		time.Sleep(10 * time.Second)
		first.stop()
		body, err := schemas.Marshal(&schemas.Alarm{V: schemas.Version, Run: "gone", Due: schemas.At(time.Now().AddDate(1, 0, 0))})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.post.PublishSync(t.Context(), ns.Alarm(0, "o", "gone"), nil, body); err != nil {
			t.Fatal(err)
		}
		f.checkpoint(func(c *schemas.Checkpoint) { c.Server = "the one before" })
		f.node("b", nil)
		time.Sleep(10 * time.Second)
		if first, last, err := f.post.StreamState(t.Context(), ns.StreamAlarms(0)); err != nil || first <= last {
			t.Fatalf("got alarms %d to %d (%v), want none", first, last, err)
		}
	})
}

// checkpoint changes the checkpoint of partition 0, as another server would have left it.
func (f *fleet) checkpoint(change func(*schemas.Checkpoint)) {
	f.t.Helper()
	value, rev, err := f.post.KVGet(f.t.Context(), ns.BucketCheckpoints(), "partition.0")
	if err != nil {
		f.t.Fatal(err)
	}
	var c schemas.Checkpoint
	if err := schemas.Unmarshal(value, &c); err != nil {
		f.t.Fatal(err)
	}
	change(&c)
	body, err := schemas.Marshal(&c)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.post.KVUpdate(f.t.Context(), ns.BucketCheckpoints(), "partition.0", body, rev, 0); err != nil {
		f.t.Fatal(err)
	}
}
