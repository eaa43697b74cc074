package locking_test

import (
	"testing"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/env/envtest"
	"github.com/droverhq/drover/schemas"
)

// A write of a state key happens once: an owner that finds it without an answer repeats it, and
// what others have written since stays.
func TestAStateKeyIsWrittenOnce(t *testing.T) { // ADR 0029
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		set := func(value string) execution.StateRequest {
			return execution.StateRequest{EventID: 5, Request: &schemas.StateRequested{
				Decision: schemas.DecideSetState, Key: "k", Value: schemas.Payload(value),
			}}
		}
		former := newHost(t, o, "a", "b")
		former.crashes = true
		o.Do(func() {
			former.want("a", set("1"), false)
			former.want("b", set("2"), false)
		})
		former.wantSaid("written", "a StateSet", "b StateSet")
		h := newHost(t, o, "a", "b")
		o.Do(func() { h.want("a", set("1"), true) })
		h.wantSaid("repeated", "a StateSet", "a done")
		key := schemas.StateKey("", "k")
		value, _, err := o.Env.Reads.KVLast(t.Context(), o.Env.NS.BucketState(), key)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := schemas.ParseState(key, value); err != nil || string(r.Value) != "2" {
			t.Errorf("got %+v, %v; want what b has written after it", r, err)
		}
		if h.keys.Busy() {
			t.Error("the key is still being changed")
		}
	})
}
