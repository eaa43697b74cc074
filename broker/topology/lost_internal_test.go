package topology

import (
	"cmp"
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/logx"
)

// lossy is a JetStream that does what it is told, and whose first answer about a stream is lost. Before its silence is noticed
// others do something.
type lossy struct {
	jetstream.JetStream
	stream    string
	meanwhile func()
	lost      bool
}

func (l *lossy) answer(stream string, err error) error {
	if err != nil || stream != l.stream || l.lost {
		return err
	}
	l.lost = true
	l.meanwhile()
	return context.DeadlineExceeded
}

func (l *lossy) DeleteStream(ctx context.Context, stream string) error {
	return l.answer(stream, l.JetStream.DeleteStream(ctx, stream))
}

func (l *lossy) UpdateStream(ctx context.Context, c jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := l.JetStream.UpdateStream(ctx, c)
	return s, l.answer(c.Name, err)
}

func made(t *testing.T, conn *natsconn.Conn, o Options) {
	t.Helper()
	o.Namespace, o.Memory = "a", true
	if _, err := Ensure(t.Context(), conn, o); err != nil {
		t.Fatal(err)
	}
}

// The answer to a step of a deletion is lost. Before the step is repeated somebody else completes the deletion and makes the
// namespace anew: the new one is left alone.
func TestDeletionWhoseAnswerIsLostSparesALaterNamespace(t *testing.T) {
	for name, lost := range map[string]*lossy{
		"a stream is deleted":     {stream: "drover-a-history-1"},
		"the signals are deleted": {stream: "drover-a-signals", lost: true}, // but for the mark, see below
		"the mark is set":         {stream: "drover-a-signals"},
		"a bucket is deleted":     {stream: "KV_drover-a-claims"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := embeddedtest.Dial(t)
			made(t, conn, Options{Partitions: 2})
			lost.JetStream = conn.JetStream()
			lost.meanwhile = func() {
				if err := Delete(t.Context(), conn, "a", DeleteOptions{}); err != nil && !errors.Is(err, ErrNoNamespace) {
					t.Fatal(err)
				}
				made(t, conn, Options{Partitions: 3})
			}
			d := &deletion{work: work{js: lost, log: logx.Or(nil)}, conn: conn, ns: "a", o: DeleteOptions{LetGo: defaultLetGo}}
			if lost.lost {
				// The mark has its answer.
				if i, err := d.lookup(t.Context(), "a"); err != nil {
					t.Fatal(err)
				} else if d.born = i.Created; d.mark(t.Context()) != nil {
					t.Fatal("not marked")
				}
				lost.lost = false
			}
			if err := d.run(t.Context()); !errors.Is(err, ErrConflict) {
				t.Errorf("got %v, want %v", err, ErrConflict)
			}
			i, err := Describe(t.Context(), conn, "a")
			if err != nil || i.Deleting || i.Partitions != 3 {
				t.Fatalf("got %+v, %v, want the new one as it was made", i, err)
			}
			streams := 0
			for _, u := range i.Usage {
				streams += u.Streams
			}
			if want := 1 + 3*3 + 2 + 7; streams != want {
				t.Fatalf("got %d streams, want the new one's %d", streams, want)
			}
		})
	}
}

// tardy is a JetStream that is slow to make one stream: something happens before.
type tardy struct {
	jetstream.JetStream
	stream string
	before func()
}

func (l *tardy) CreateStream(ctx context.Context, c jetstream.StreamConfig) (jetstream.Stream, error) {
	if c.Name == l.stream {
		l.before()
	}
	return l.JetStream.CreateStream(ctx, c)
}

// A task list, or the store of payloads, is made when the namespace has been deleted meanwhile. It is not left for a later
// namespace, to which it would not fit.
func TestMadeAfterADeletion(t *testing.T) {
	for stream, make := range map[string]func(*work) error{
		"drover-a-tasks-l":      func(w *work) error { return w.list(t.Context(), "a", "l", ListOptions{}.withDefaults()) },
		"OBJ_drover-a-payloads": func(w *work) error { return w.ensurePayloads(t.Context(), "a", "0.0.0") },
	} {
		t.Run(stream, func(t *testing.T) {
			conn := embeddedtest.Dial(t)
			made(t, conn, Options{Partitions: 2})
			slow := &tardy{JetStream: conn.JetStream(), stream: stream, before: func() {
				if err := Delete(t.Context(), conn, "a", DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}}
			if err := make(&work{js: slow, log: logx.Or(nil)}); !errors.Is(err, ErrDeleting) {
				t.Errorf("got %v, want %v", err, ErrDeleting)
			}
			made(t, conn, Options{Partitions: 3})
			if err := make(&work{js: conn.JetStream(), log: logx.Or(nil)}); err != nil {
				t.Error(err)
			}
		})
	}
}

// The answer to a change of a namespace is lost. Before it is repeated the namespace is deleted and made anew: the new one stays
// as it was made.
func TestChangeWhoseAnswerIsLostSparesALaterNamespace(t *testing.T) {
	conn := embeddedtest.Dial(t)
	made(t, conn, Options{Partitions: 2})
	lost := &lossy{JetStream: conn.JetStream(), stream: "drover-a-signals", meanwhile: func() {
		if err := Delete(t.Context(), conn, "a", DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		made(t, conn, Options{Partitions: 3})
	}}
	o := Options{Namespace: "a", Memory: true, MaxBytes: 64 << 20}
	if _, err := (&work{js: lost, log: logx.Or(nil)}).ensure(t.Context(), conn, o.withDefaults()); !errors.Is(err, ErrConflict) {
		t.Errorf("got %v, want %v", err, ErrConflict)
	}
	if i, err := Lookup(t.Context(), conn, "a"); err != nil || i.Partitions != 3 || i.MaxBytes != 0 {
		t.Fatalf("got %+v, %v, want the new one as it was made", i, err)
	}
}

// While the streams of a namespace are made, others delete it, or begin to, or make it anew with another number of partitions. Whoever
// made them hears of it: with the number that it began with it would look for workflows where they are not.
func TestMadeBesideADeletion(t *testing.T) {
	for name, tc := range map[string]struct {
		before int // partitions; 0: there is no such namespace
		then   func(*testing.T, *natsconn.Conn)
		want   error
	}{
		"deleted": {0, func(t *testing.T, conn *natsconn.Conn) { gone(t, conn) }, ErrDeleting},
		"being deleted": {2, func(t *testing.T, conn *natsconn.Conn) {
			d := &deletion{work: work{js: conn.JetStream(), log: logx.Or(nil)}, conn: conn, ns: "a"}
			i, err := d.lookup(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			d.born = i.Created
			if err := d.mark(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, ErrDeleting},
		"made anew with more": {0, func(t *testing.T, conn *natsconn.Conn) { gone(t, conn); made(t, conn, Options{Partitions: 3}) }, ErrConflict},
		"made anew with less": {2, func(t *testing.T, conn *natsconn.Conn) { gone(t, conn); made(t, conn, Options{Partitions: 1}) }, ErrConflict},
		"made anew as it was": {2, func(t *testing.T, conn *natsconn.Conn) { gone(t, conn); made(t, conn, Options{Partitions: 2}) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			conn := embeddedtest.Dial(t)
			last := "drover-a-history-1"
			if tc.before > 0 {
				made(t, conn, Options{Partitions: tc.before})
				if err := conn.JetStream().DeleteStream(t.Context(), last); err != nil { // which is missing of it
					t.Fatal(err)
				}
			}
			slow := &tardy{JetStream: conn.JetStream(), stream: last, before: func() { tc.then(t, conn) }}
			// With a limit the streams are made one after the other: none is made beside what happens meanwhile.
			o := Options{Namespace: "a", Memory: true, Partitions: cmp.Or(tc.before, 2), MaxBytes: 64 << 20}.withDefaults()
			if _, err := (&work{js: slow, log: logx.Or(nil)}).ensure(t.Context(), conn, o); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func gone(t *testing.T, conn *natsconn.Conn) {
	t.Helper()
	if err := Delete(t.Context(), conn, "a", DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}
