package types

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/bucket"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
)

// Nothing is left of types that were deleted an hour ago, neither in the bucket nor in a broker's
// memory; those that were registered again stay.
func TestDeletedTypesLeaveNothing(t *testing.T) {
	conn := embeddedtest.Dial(t)
	space, err := topology.Ensure(
		t.Context(),
		conn,
		topology.Options{Namespace: "types", Partitions: 1, Memory: true},
	)
	if err != nil {
		t.Fatal(err)
	}
	table, follow, err := Open(t.Context(), Options{
		Conn: conn, Reads: conn, Bucket: space.Name.BucketTypes(), Log: logx.Or(nil),
		Now:     func() schemas.Timestamp { return schemas.At(time.Now()) },
		Publish: func(*execution.Types) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	var following sync.WaitGroup
	following.Go(func() { follow(t.Context()) })
	t.Cleanup(following.Wait)
	deprecate := SetStatus(schemas.TypeDeprecated)
	for n := range 10 {
		q := &schemas.TypeRequest{Kind: schemas.WorkflowKind, Name: fmt.Sprint("release-", n)}
		register := &schemas.TypeRegisterRequest{Kind: q.Kind, Name: q.Name}
		for _, step := range []func() (any, error){
			func() (any, error) { return table.Register(t.Context(), register) },
			func() (any, error) { return deprecate(table, t.Context(), q) },
			func() (any, error) { return table.Remove(t.Context(), q) },
		} {
			if _, err := step(); err != nil {
				t.Fatal(err)
			}
		}
		if n == 0 {
			if _, err := table.Register(t.Context(), register); err != nil {
				t.Fatal(err)
			}
		}
	}
	last, err := bucket.Last(t.Context(), conn, table.o.Bucket, ">")
	if err != nil {
		t.Fatal(err)
	}
	poll.Until(
		t,
		10*time.Second,
		"the watch has come to the end of the bucket",
		func() bool { return table.Reached(last.Seq) },
	)
	left := func(now time.Time) (keys, known int) {
		table.tidy(t.Context(), now)
		all, err := conn.KVMatching(t.Context(), table.o.Bucket, ">")
		if err != nil {
			t.Fatal(err)
		}
		table.mu.Lock()
		defer table.mu.Unlock()
		return len(all), len(table.entries)
	}
	if keys, known := left(time.Now()); keys != 10 || known != 10 {
		t.Errorf(
			"a moment later the bucket has %d keys, and the broker knows %d; other brokers may "+
				"not have seen yet that 9 are gone",
			keys,
			known,
		)
	}
	if keys, known := left(time.Now().Add(markFor)); keys != 1 || known != 1 {
		t.Errorf(
			"an hour later the bucket has %d keys, and the broker knows %d: want the one that was registered again",
			keys,
			known,
		)
	}
	if got := table.list(func(*schemas.TypeInfo) bool { return true }); len(got) != 1 ||
		got[0].info.Name != "release-0" {
		t.Errorf("got types %+v", got)
	}
}
