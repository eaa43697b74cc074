package broker

import (
	"io"
	"testing"
	"testing/synctest"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

// The start of a child is read again behind a take-over: its parent is told how it has ended only if the history says so by then.
func TestAnswerToAStartThatIsReadAgain(t *testing.T) { // P-1, P-5
	defer embedded.RegisterTicker()() // outside of all bubbles
	synctest.Test(t, func(t *testing.T) {
		conn := embeddedtest.Dial(t)
		n, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, Partitions: 1})
		if err != nil {
			t.Fatal(err)
		}
		held, err := claims.Open(conn, n.Name.BucketClaims(), claims.Options{Node: "a"})
		if err != nil {
			t.Fatal(err)
		}
		lease, err := held.TryAcquire(t.Context(), "partition.0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = lease.Release(t.Context()) }()
		silent := logrus.New()
		silent.SetOutput(io.Discard)
		p := newPartition(&Broker{conn: conn, ns: n.Name, o: Options{Logger: silent, Partitions: 1}}, 0, lease)
		if p.outside, err = conn.NewOutbox(post.OutboxOptions{}); err != nil {
			t.Fatal(err)
		}
		defer p.outside.Close()
		q := &schemas.StartRequest{WorkflowID: "kid", Run: "r2", Origin: &schemas.StartOrigin{Parent: &schemas.Execution{WorkflowID: "o", Run: "r1"}, ParentScheduledEventID: 5}}
		for _, tc := range []struct {
			name   string
			change func(*run)
			want   schemas.Status
		}{
			{"it is open", func(r *run) { r.state.Status, r.state.Close = schemas.StatusOpen, nil }, schemas.StatusOpen},
			{"its end is in the history", func(*run) {}, schemas.StatusCompleted},
			{"its end waits to be written", func(r *run) { r.pending = []group{{}} }, schemas.StatusOpen},
			{"its end is on its way", func(r *run) { r.inflight = &commit{} }, schemas.StatusOpen},
		} {
			r := openRun()
			r.state.Start.ParentWorkflowExecution, r.state.Start.ParentScheduledEventID = q.Origin.Parent, 5
			r.state.Status, r.state.Close = schemas.StatusCompleted, &schemas.Event{Attributes: &schemas.WorkflowSuccess{}}
			tc.change(r)
			p.answerChildLate(r, &envelope{ticket: &ticket{}}, q)
			synctest.Wait()
			m, err := conn.LastBySubject(t.Context(), n.Name.StreamIn(0), n.Name.In(0, "o", kindChild))
			var got schemas.ChildReport
			if err == nil {
				err = schemas.Unmarshal(m.Data, &got)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != tc.want {
				t.Errorf("%s: the parent is told %q, want %q", tc.name, got.Status, tc.want)
			}
		}
	})
}
