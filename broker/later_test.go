package broker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
)

// A partition whose checkpoint, or fence, a later version has written is tried again now and then, not as fast as the machine can, and the
// log names the way out.
func TestTakeOverBehindALaterVersion(t *testing.T) {
	later := []byte("\x07\x80")
	for name, write := range map[string]func(*fleet) error{
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
				refused := 0
				for _, e := range kept.AllEntries() {
					if e.Message != "the partition cannot be served; trying again" {
						continue
					}
					refused++
					if err, _ := e.Data[logrus.ErrorKey].(error); err == nil || !strings.Contains(err.Error(), "update this one") {
						t.Errorf("got %v, want the way out in it", err)
					}
				}
				if refused < 2 || refused > 12 {
					t.Errorf("got %d refused take-overs in 20 s, want one every two seconds", refused)
				}
			})
		})
	}
}
