package natsconn

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/internal/virtual"
)

func take(t *testing.T, c *Conn) (Task, bool) {
	t.Helper()
	task, ok, err := c.Take(t.Context(), "S", "W")
	if err != nil {
		t.Fatal(err)
	}
	return task, ok
}

// A task whose lease is over comes before those that were never delivered, and what is taken is on a lease of its own.
func TestTake(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		queue(t, c)
		if _, ok := take(t, c); ok {
			t.Fatal("took a task from an empty queue")
		}
		fill(t, c, 2, 3)
		synctest.Wait() // the server tells its consumers after the acknowledgement
		first, ok := take(t, c)
		if !ok || first.Seq != 1 || first.Delivered != 1 || string(first.Data) != "0" || first.Time.IsZero() {
			t.Fatalf("got %+v %v, want the first task", first, ok)
		}
		if w, err := c.WorkState(t.Context(), "S", "W"); err != nil || w != (WorkState{Pending: 1, Working: 1}) {
			t.Fatalf("got %+v %v, want one task of each", w, err)
		}
		time.Sleep(ackWait + time.Second)
		again, ok := take(t, c)
		if !ok || again.Seq != 1 || again.Delivered != 2 {
			t.Fatalf("got %+v %v, want the first task for the second time", again, ok)
		}
		if err := again.Ack(); err != nil {
			t.Fatal(err)
		}
		if second, ok := take(t, c); !ok || second.Seq != 2 || second.Delivered != 1 {
			t.Fatalf("got %+v %v, want the second task", second, ok)
		}
		if _, ok := take(t, c); ok {
			t.Fatal("took a task that is on its lease")
		}
		if _, ok, err := c.Take(t.Context(), "S", "nobody"); ok || err != nil && !errors.Is(err, ErrTimeout) {
			t.Fatalf("got %v %v from a consumer that is not there", ok, err)
		}
		if _, err := c.WorkState(t.Context(), "S", "nobody"); !errors.Is(err, ErrNoConsumer) {
			t.Fatalf("got %v, want that the consumer is not there", err)
		}
		if _, err := c.WorkState(t.Context(), "T", "W"); !errors.Is(err, ErrNoStream) {
			t.Fatalf("got %v, want that the stream is not there", err)
		}
	})
}

func TestStreamNames(t *testing.T) {
	c := connect(t)
	for _, name := range []string{"A", "B"} {
		if _, err := c.JetStream().CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{"task." + name + ".*"}}); err != nil {
			t.Fatal(err)
		}
	}
	for filter, want := range map[string][]string{"task.*.*": {"A", "B"}, "task.B.1": {"B"}, "other.>": nil} {
		got, err := c.StreamNames(t.Context(), filter)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v %v, want %v", filter, got, err, want)
		}
	}
}
