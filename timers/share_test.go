package timers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/timers"
)

// Two workers share the partitions; the one that stops as planned gives its share up in milliseconds, the one that comes
// back gets it again, and every alarm rings once.
func TestPartitionsAreShared(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		const partitions = 8
		shared := subject.Namespace("shared")
		if _, err := topology.Ensure(t.Context(), r.conn, topology.Options{Namespace: string(shared), Partitions: partitions, Memory: true}); err != nil {
			t.Fatal(err)
		}
		for minute := range 3 {
			for p := range partitions {
				body, err := schemas.Marshal(&schemas.Alarm{Run: "RUN", Due: schemas.At(time.Now().Add(time.Duration(minute+1) * time.Minute))})
				if err != nil {
					t.Fatal(err)
				}
				r.put(shared.Alarm(p, fmt.Sprint("w", minute), "RUN"), body)
			}
		}
		var seen *claims.Claims
		begin := func(node string) (stop func() error) {
			conn := r.dial()
			c, err := claims.Open(conn, shared.BucketClaims(), claims.Options{Node: node})
			if err != nil {
				t.Fatal(err)
			}
			seen = c
			return r.start(timers.New(conn, &timers.Options{Namespace: string(shared), Partitions: partitions, Claims: c}))
		}
		owned := func() map[string]int {
			infos, err := seen.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			n := map[string]int{}
			for _, i := range infos {
				for p := range partitions {
					if i.Key == claims.Alarms(p) && !i.Expired {
						n[i.Node]++
					}
				}
			}
			return n
		}
		stopFirst := begin("n1")
		begin("n2")
		time.Sleep(10 * time.Second)
		if n := owned(); n["n1"] == 0 || n["n2"] == 0 || n["n1"]+n["n2"] != partitions {
			t.Fatalf("got shares %v, want that both have some of %d", n, partitions)
		}
		time.Sleep(65 * time.Second) // the first alarms have rung
		began := time.Now()
		if err := stopFirst(); err != nil {
			t.Fatal(err)
		}
		stopped := time.Since(began)
		time.Sleep(50 * time.Millisecond)
		if n := owned(); n["n2"] != partitions {
			t.Fatalf("got shares %v right after the stop, which took %v, want that the other has all", n, stopped)
		}
		time.Sleep(time.Minute)
		begin("n1")
		time.Sleep(2 * time.Minute)
		if n := owned(); n["n1"] == 0 || n["n1"]+n["n2"] != partitions {
			t.Fatalf("got shares %v, want that both have some of %d again", n, partitions)
		}
		for p := range partitions {
			if last, err := r.conn.StreamLastSeq(t.Context(), shared.StreamIn(p)); err != nil || last != 3 {
				t.Errorf("partition %d: got %d rings (%v), want 3", p, last, err)
			}
		}
	})
}
