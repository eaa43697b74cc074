package broker_test

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// A partition whose checkpoint, or fence, a later version has written is tried again now and then, not as fast as the machine can, and the
// log names the way out. So is one whose bucket of checkpoints is gone, and one whose account allows no more consumers: each try writes a fence.
func TestTakeOverLaterALaterVersion(t *testing.T) {
	later := []byte("\x07\x80")
	wayOut := []string{"update this one", "drover namespace create default", "max_consumers"}
	for name, write := range map[string]func(*fleet) error{
		"no bucket of checkpoints": func(f *fleet) error { return f.js.DeleteStream(f.t.Context(), "KV_"+ns.BucketCheckpoints()) },
		"checkpoint": func(f *fleet) error {
			_, rev, err := f.post.KVGet(f.t.Context(), ns.BucketCheckpoints(), "partition.0")
			if err == nil {
				_, err = f.post.KVUpdate(f.t.Context(), ns.BucketCheckpoints(), "partition.0", later, rev, 0)
			}
			return err
		},
		"fence": func(f *fleet) error {
			_, err := f.post.PublishSync(f.t.Context(), ns.Fence(0), nil, later)
			return err
		},
		"no more consumers": func(f *fleet) error {
			_, err := f.js.CreateConsumer(f.t.Context(), ns.StreamSignals(), jetstream.ConsumerConfig{Durable: "another"})
			f.accountOf(embeddedtest.Limits{MaxConsumers: 1})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				a := f.node("a", nil)
				f.publish(ns.In(0, "o", "start"), startO)
				time.Sleep(10 * time.Second) // it leaves a checkpoint
				a.stop()
				if err := write(f); err != nil {
					t.Fatal(err)
				}
				kept := logtest.NewLocal(f.log)
				f.node("b", nil)
				time.Sleep(20 * time.Second)
				refused, most := 0, 12
				if name == "no bucket of checkpoints" {
					most = 18 // the first ones come faster: a cluster that elects looks like that
				}
				for _, e := range kept.AllEntries() {
					if e.Message != "the partition cannot be served; trying again" {
						continue
					}
					refused++
					if err, _ := e.Data[logrus.ErrorKey].(error); err == nil || !slices.ContainsFunc(wayOut, func(s string) bool { return strings.Contains(err.Error(), s) }) {
						t.Errorf("got %v, want the way out in it", err)
					}
				}
				if refused < 2 || refused > most {
					t.Errorf("got %d refused take-overs in 20 s, want one every two seconds", refused)
				}
			})
		})
	}
}

// An open run with an event of a type that this version does not know does not go on: it may have ended by it. One that has closed can be
// looked at.
func TestEventOfALaterVersion(t *testing.T) {
	later := &schemas.Unknown{Type: "WorkflowFrozen", Raw: []byte("\x80")}
	for _, tc := range []struct {
		name   string
		more   []schemas.Attributes
		answer string
	}{
		{"open", []schemas.Attributes{later}, "update this server"},
		{"closed", []schemas.Attributes{later, &schemas.WorkflowTerminated{}}, `"terminated"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.decider("order", func(*decisionTask) string { return "[]" })
				a := f.node("a", nil)
				f.publish(ns.In(0, "o", "start"), startO)
				f.await("o", schemas.EventDeciderCompleted)
				a.stop()
				f.append("o", tc.more...)
				f.node("b", nil)
				time.Sleep(10 * time.Second)
				if got := string(f.request("drover.default.api.describe", `{"workflowId":"o"}`)); !strings.Contains(got, tc.answer) {
					t.Errorf("got %s, want %s in it", got, tc.answer)
				}
				before := len(f.records(0))
				f.publish("drover.default.signal.o.go", "")
				time.Sleep(10 * time.Second)
				if after := len(f.records(0)); after != before {
					t.Errorf("%d records were added to what this version does not know", after-before)
				}
			})
		})
	}
}

// append adds a record to the only run of a workflow, as its owner would.
func (f *fleet) append(id string, more ...schemas.Attributes) {
	f.t.Helper()
	last, err := f.post.LastBySubject(f.t.Context(), ns.StreamHistory(0), ns.HistoryOfWorkflow(0, id))
	if err != nil {
		f.t.Fatal(err)
	}
	var r schemas.Record
	if err := schemas.Unmarshal(last.Data, &r); err != nil {
		f.t.Fatal(err)
	}
	end, hash := r.Events[len(r.Events)-1], sha256.Sum256(last.Data)
	r.First, r.Previous, r.Snapshot, r.Events = end.ID+1, hash[:], nil, nil
	for i, a := range more {
		r.Events = append(r.Events, schemas.Event{ID: r.First + int64(i), Time: end.Time, Attributes: a})
	}
	body, err := schemas.Marshal(&r)
	if err == nil {
		_, err = f.post.PublishSync(f.t.Context(), last.Subject, natsconn.Header{schemas.StatusHeader: last.Header[schemas.StatusHeader]}, body)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// Nobody is advised to delete what a later version has written: a lock may be held.
func TestKeysOfALaterVersion(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", func(*decisionTask) string { return `[{"type":"AcquireLock","attributes":{"lock":"l"}}]` })
		for bucket, key := range map[string]string{ns.BucketLocks(): "=.l", ns.BucketTypes(): "workflow.t.="} {
			if _, err := f.post.KVCreate(f.t.Context(), bucket, key, []byte(`{"v":2}`), 0); err != nil {
				t.Fatal(err)
			}
		}
		kept := logtest.NewLocal(f.log)
		f.node("a", nil)
		f.start(startO)
		f.await("o", schemas.EventLockRequested)
		time.Sleep(time.Minute)
		known := map[any]int{}
		for _, e := range kept.AllEntries() {
			if err, _ := e.Data[logrus.ErrorKey].(error); !errors.Is(err, schemas.ErrVersion) {
				continue
			}
			known[e.Data["key"]]++
			if !strings.Contains(e.Message, "update") || strings.Contains(e.Message, "; delete it") {
				t.Errorf("got %q of %v, want the advice to update", e.Message, e.Data["key"])
			}
		}
		if known["workflow.t.="] != 1 || known["=.l"] < 2 || known["=.l"] > 15 {
			t.Errorf("got %v warnings, want one of the type, and one of the lock every five seconds", known)
		}
		if got := string(f.request("drover.default.api.typeDescribe", `{"kind":"workflow","name":"t"}`)); !strings.Contains(got, "update this server") {
			t.Errorf("got %s, want the advice to update", got)
		}
	})
}
