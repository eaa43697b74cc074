package ops_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/ops"
	"github.com/droverhq/drover/schemas"
)

// A partition whose owner does not answer is waited for once in a sweep, and not for each of its tasks: what else the health task does
// would wait too.
func TestRevertWaitsOnceForSilentOwner(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		conn := embeddedtest.Connect(t, s)
		const lists = 8
		for i := range lists {
			list := fmt.Sprint("l", i)
			if err := topology.EnsureList(t.Context(), conn, ns, list, topology.ListOptions{}); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"a", "b"} {
				body, err := schemas.MarshalJSON(&schemas.ActivityTask{
					V: schemas.Version, WorkflowID: "o", Run: "r", ActivityID: id, List: list, Token: id, Report: ns.ActOutcome(0, "o", list),
				})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := conn.PublishSync(t.Context(), ns.Task(list, 0), nil, body); err != nil {
					t.Fatal(err)
				}
				for _, consumer := range subject.Consumers() { // a worker takes it and dies
					if _, _, err := conn.Take(t.Context(), ns.StreamTasks(list), consumer); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		time.Sleep(time.Minute)
		const answer = 5 * time.Second
		r, err := ops.NewReverter(ops.ReverterOptions{Conn: conn, Namespace: ns, Answer: answer})
		if err != nil {
			t.Fatal(err)
		}
		sweep(t, r)
		began := time.Now()
		if _, _, err := r.Revert(t.Context()); err == nil || strings.Count(err.Error(), "has not answered") != 1 {
			t.Errorf("got %v, want one word of an owner that has not answered", err)
		}
		if took := time.Since(began); took > answer+time.Second {
			t.Errorf("a sweep took %v, want no more than one answer of %v", took, answer)
		}
	})
}
