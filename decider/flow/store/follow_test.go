package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/decider/flow/store"
)

func TestFollow(t *testing.T) {
	virtually(t, func(t *testing.T, b *bench) {
		var told [][]string
		var troubles []string
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		o := &store.FollowOptions{Trouble: func(err error) {
			if err == nil {
				troubles = append(troubles, "over")
			} else {
				troubles = append(troubles, err.Error())
			}
		}}
		go func() { ended <- b.Follow(ctx, o, func(names []string) { told = append(told, names) }) }()
		wait := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		want := func(what string, all ...[]string) {
			t.Helper()
			if diff := cmp.Diff(all, told); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
			told = nil
		}
		wait(time.Second)
		want("at first", []string(nil))
		b.deploy("name: b\nsteps: [no-op]")
		wait(time.Second)
		want("a flow", []string{"b"})
		b.deploy("name: a.b c\nsteps: [no-op]")
		b.deploy("id: of-a-type\nsteps: [no-op]")
		b.deploy("name: b\nsteps: [log 2]")
		wait(time.Minute)
		want("another flow; a step type and a version are none", []string{"a.b c", "b"})
		_, rev, err := b.conn.KVGet(t.Context(), ns.BucketFlows(), "flow.b.current")
		if err == nil {
			err = b.conn.KVDelete(t.Context(), ns.BucketFlows(), "flow.b.current", rev)
		}
		if err != nil {
			t.Fatal(err)
		}
		wait(time.Minute)
		want("a deleted flow stays for the runs that are open")

		if err := b.conn.JetStream().DeleteStream(t.Context(), "KV_"+ns.BucketFlows()); err != nil {
			t.Fatal(err)
		}
		wait(time.Minute)
		if len(troubles) != 1 || !strings.Contains(troubles[0], "it has no bucket") {
			t.Errorf("got troubles %q, want one about the bucket", troubles)
		}
		if _, err := topology.Ensure(t.Context(), b.conn, topology.Options{Memory: true, Partitions: 1}); err != nil {
			t.Fatal(err)
		}
		b.deploy("name: c\nsteps: [no-op]")
		wait(time.Minute)
		want("a bucket that was made anew", []string{"c"})
		if len(troubles) != 2 || troubles[1] != "over" {
			t.Errorf("got troubles %q, want that it is over", troubles)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("got %v", err)
		}
	})
}

func TestFollowManyNames(t *testing.T) {
	virtually(t, func(t *testing.T, b *bench) {
		for i := range 300 { // more than a page
			b.deploy(fmt.Sprintf("name: n%d\nsteps: [no-op]", i))
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := b.Follow(ctx, nil, func(names []string) {
			if len(names) != 300 {
				t.Errorf("got %d names, want 300", len(names))
			}
			cancel()
		})
		if err != nil {
			t.Error(err)
		}
	})
}
