package payloads_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

const ns = subject.Namespace("default")

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// shelf is a store on a server of its own.
type shelf struct {
	*payloads.Store
	t    *testing.T
	conn *natsconn.Conn
	made atomic.Int32 // how often the store was to be made
}

func virtually(t *testing.T, fn func(t *testing.T, s *shelf)) {
	t.Helper()
	virtual.Run(t, func(t *testing.T) {
		conn := embeddedtest.Dial(t)
		if _, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, Partitions: 1}); err != nil {
			t.Fatal(err)
		}
		s := &shelf{t: t, conn: conn}
		s.Store = payloads.NewStore(conn, ns, func(ctx context.Context) error {
			s.made.Add(1)
			return topology.EnsurePayloads(ctx, conn, ns, "test")
		})
		fn(t, s)
	})
}

func (s *shelf) put(object string, content []byte) *schemas.PayloadRef {
	s.t.Helper()
	ref, err := s.Put(s.t.Context(), object, content)
	if err != nil {
		s.t.Fatal(err)
	}
	return ref
}

func (s *shelf) read(object string, limit int) (content []byte, pieces int) {
	s.t.Helper()
	for cursor := ""; ; {
		data, next, err := s.Read(s.t.Context(), object, cursor, limit)
		if err != nil {
			s.t.Fatal(err)
		}
		pieces++
		content = append(content, data...)
		if cursor = next; cursor == "" {
			return content, pieces
		}
	}
}

func (s *shelf) messages() uint64 {
	s.t.Helper()
	stream, err := s.conn.JetStream().Stream(s.t.Context(), ns.StreamPayloads())
	if err != nil {
		s.t.Fatal(err)
	}
	return stream.CachedInfo().State.Msgs
}

func TestReadInPieces(t *testing.T) {
	virtually(t, func(t *testing.T, s *shelf) {
		const chunk = 128 << 10
		for i, tt := range []struct{ size, limit, want int }{
			{1, 0, 1}, {chunk, 0, 1}, {chunk + 1, 0, 2}, {4 * chunk, 2 * chunk, 2}, {4 * chunk, 3*chunk - 1, 2}, {4 * chunk, 64 << 20, 1},
		} {
			content := bytes.Repeat([]byte{byte(tt.size), 1, 2}, tt.size)[:tt.size]
			ref := s.put(fmt.Sprint("o", i), content)
			got, pieces := s.read(ref.Object, tt.limit)
			if !bytes.Equal(got, content) || pieces != tt.want {
				t.Errorf("%d bytes with limit %d: got %d bytes in %d pieces, want %d", tt.size, tt.limit, len(got), pieces, tt.want)
			}
		}
	})
}

func TestFirstOfANameWins(t *testing.T) {
	virtually(t, func(t *testing.T, s *shelf) {
		first := s.put("o", []byte("first"))
		before := s.messages()
		if got := s.put("o", []byte("second, larger")); *got != *first {
			t.Fatalf("got %+v, want %+v", got, first)
		}
		// A writer that did not see the first one when it began.
		w := s.NewWriter()
		if err := w.Write(t.Context(), []byte("third")); err != nil {
			t.Fatal(err)
		}
		if got, err := w.Commit(t.Context(), "o"); err != nil || *got != *first {
			t.Fatalf("got %+v, %v; want %+v", got, err, first)
		}
		if got := s.messages(); got != before {
			t.Fatalf("got %d messages, want %d: the losers' chunks are left", got, before)
		}
		if got, _ := s.read("o", 0); string(got) != "first" {
			t.Fatalf("got %q", got)
		}
	})
}

func TestWritersOfOneNameAtOnce(t *testing.T) {
	virtually(t, func(t *testing.T, s *shelf) {
		content := bytes.Repeat([]byte("same"), 100_000)
		refs := make([]*schemas.PayloadRef, 16)
		var all sync.WaitGroup
		for i := range refs {
			all.Go(func() {
				var err error
				if refs[i], err = s.Put(context.Background(), "o", content); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, ref := range refs {
			if ref == nil || *ref != *refs[0] {
				t.Fatalf("got %+v, want all to be %+v", ref, refs[0])
			}
		}
		if got := s.messages(); got != 5 { // four chunks and what is known of them
			t.Fatalf("got %d messages, want 5", got)
		}
		if got, _ := s.read("o", 0); !bytes.Equal(got, content) {
			t.Fatalf("got %d bytes", len(got))
		}
	})
}

func TestStoreIsMadeWhenItIsNeeded(t *testing.T) {
	virtually(t, func(t *testing.T, s *shelf) {
		if _, _, err := s.Read(t.Context(), "o", "", 0); !errors.Is(err, natsconn.ErrNotFound) {
			t.Fatalf("got %v, want ErrNotFound", err)
		}
		if got := s.made.Load(); got != 0 {
			t.Fatalf("it was made %d times for nothing", got)
		}
		s.put("o", []byte("1"))
		s.put("p", []byte("2"))
		if err := s.conn.JetStream().DeleteStream(t.Context(), ns.StreamPayloads()); err != nil {
			t.Fatal(err)
		}
		s.put("o", []byte("3"))
		if got := s.made.Load(); got != 2 {
			t.Fatalf("it was made %d times, want 2", got)
		}
		if got, _ := s.read("o", 0); string(got) != "3" {
			t.Fatalf("got %q, want what was stored after", got)
		}
	})
}

// A missing chunk is an error, never a shorter payload.
func TestMissingChunk(t *testing.T) {
	virtually(t, func(t *testing.T, s *shelf) {
		s.put("o", make([]byte, 300<<10))
		if err := s.conn.DeleteMsg(t.Context(), ns.StreamPayloads(), 3); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Read(t.Context(), "o", "", 64<<20); !errors.Is(err, natsconn.ErrNotFound) {
			t.Fatalf("got %v, want ErrNotFound", err)
		}
	})
}

// What another NATS client has deleted is gone, and its name is free: whoever reads a message again that its object is named by stores it anew.
func TestDeletedByAnotherClient(t *testing.T) {
	virtually(t, func(t *testing.T, s *shelf) {
		s.put("o", []byte("first"))
		other, err := s.conn.JetStream().ObjectStore(t.Context(), ns.StorePayloads())
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Delete(t.Context(), "o"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Read(t.Context(), "o", "", 0); !errors.Is(err, natsconn.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
		if all := s.objects(); len(all) != 0 {
			t.Errorf("got %+v, want none", all)
		}
		second := s.put("o", []byte("second"))
		if got, _ := s.read("o", 0); string(got) != "second" {
			t.Errorf("got %q, want what was stored after the deletion", got)
		}
		if got := s.put("o", []byte("third")); *got != *second {
			t.Errorf("got %+v, want %+v", got, second)
		}
		if got, err := other.GetString(t.Context(), "o"); err != nil || got != "second" {
			t.Errorf("another client: got %q, %v", got, err)
		}
		if all := s.objects(); len(all) != 1 || len(s.chunks()) != 1 {
			t.Errorf("got %+v and chunks %v, want one object and its chunks", all, s.chunks())
		} else if err := s.Forget(t.Context(), all[0]); err != nil {
			t.Error(err)
		}
		if _, _, err := s.Read(t.Context(), "o", "", 0); !errors.Is(err, natsconn.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	})
}

// The answer to a commit is lost, and it is repeated: the object keeps its chunks.
func TestCommitThatIsRepeated(t *testing.T) {
	virtually(t, func(t *testing.T, s *shelf) {
		w := s.NewWriter()
		if err := w.Write(t.Context(), []byte("content")); err != nil {
			t.Fatal(err)
		}
		first, err := w.Commit(t.Context(), "o")
		if err != nil {
			t.Fatal(err)
		}
		if again, err := w.Commit(t.Context(), "o"); err != nil || *again != *first {
			t.Fatalf("got %+v, %v, want %+v", again, err, first)
		}
		if got, _ := s.read("o", 0); string(got) != "content" {
			t.Errorf("got %q", got)
		}
	})
}

// A cursor names a place before the end of an object; others are of the caller's own making.
func TestCursors(t *testing.T) {
	virtually(t, func(t *testing.T, s *shelf) {
		s.put("o", make([]byte, 300<<10))
		_, next, err := s.Read(t.Context(), "o", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		id, _, _ := strings.Cut(next, ".")
		for _, cursor := range []string{"x", ".1.1", id + ".1", id + ".1.1.1", id + ".-1.1", id + ".1.0", id + ".1.-1", id + ".1.?"} {
			if data, _, err := s.Read(t.Context(), "o", cursor, 0); !errors.Is(err, payloads.ErrCursor) {
				t.Errorf("%s: got %d bytes, %v, want %v", cursor, len(data), err, payloads.ErrCursor)
			}
		}
	})
}
