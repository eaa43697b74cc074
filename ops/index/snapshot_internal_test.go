package index

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/droverhq/drover/internal/sample"
	"github.com/droverhq/drover/ops/query"
)

// small is a store of a few rows with all there is.
func small() *Store {
	s := New(2)
	for n := range 5 {
		s.Put(&query.Row{
			WorkflowID: fmt.Sprint(
				"order-",
				n,
			), Run: []string{"01M8997E5WP7J0VWH2ADHNDCXP", "r"}[n%2],
			Type: "order", Status: "open", Started: 7, Events: 3, Tags: []string{"a", "", "b"}[:n%4],
			Reason: "no", Attributes: map[string]string{"k": fmt.Sprint(n % 2), "l": "ä"}, Sequence: 9,
		})
	}
	s.Delete("order-3", "r")
	s.stats.Dropped, s.stats.DroppedUntil, s.stats.Refused = 3, 4, []string{"too", "many"}
	return s
}

func written(tb testing.TB, s *Store) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := s.Write(&b, Mark{Position: 12, Incarnation: "i"}); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func TestDamagedSnapshots(t *testing.T) {
	sample.OneOfEight(t)
	all := written(t, small())
	if _, m, err := Read(iotest.OneByteReader(bytes.NewReader(all))); err != nil ||
		m.Position != 12 {
		t.Fatalf("%+v: %v", m, err)
	}
	wrong := func(what string, content []byte) {
		if s, m, err := Read(bytes.NewReader(content)); err == nil || s != nil || m != (Mark{}) {
			t.Errorf("%s: got %v %v, %v", what, s, m, err)
		}
	}
	for n := range all {
		wrong(fmt.Sprint("cut at byte ", n), all[:n])
		for _, bit := range []byte{1, 1 << 7} {
			flipped := bytes.Clone(all)
			flipped[n] ^= bit
			wrong(fmt.Sprint("another byte ", n), flipped)
		}
	}
	wrong("longer", append(bytes.Clone(all), 0))
	wrong("twice", append(bytes.Clone(all), all...))
	// Sections that are whole, but are not where they should be.
	head := len(magic) + 5 + int(all[len(magic)+1]) + 4
	end := len(all) - (5 + 12 + 4)
	wrong("no blocks", append(bytes.Clone(all[:head]), all[end:]...))
	wrong("no head", append(bytes.Clone(all[:len(magic)]), all[head:]...))
	wrong("a block twice", append(bytes.Clone(all[:end]), all[head:]...))
}

type broken struct{ left int }

func (b *broken) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, fmt.Errorf("the disk is full")
	}
	return len(p), nil
}

func TestWriteFails(t *testing.T) {
	s := small()
	whole := len(written(t, s))
	for n := range whole {
		if s.Write(&broken{n}, Mark{Incarnation: "i"}) == nil {
			t.Fatalf("no error after %d bytes of %d", n, whole)
		}
	}
	if s.Write(&broken{1 << 20}, Mark{Incarnation: strings.Repeat("i", 1025)}) == nil {
		t.Error("an incarnation may be of any length")
	}
}

// While a snapshot is written, a run is deleted and comes back: what is read has it once.
func TestSnapshotOfARunThatComesBack(t *testing.T) {
	s := New(0)
	for n := range blockRows + 1 {
		s.Put(&query.Row{WorkflowID: fmt.Sprint(n), Run: "r", Sequence: 1})
	}
	var b bytes.Buffer
	if err := s.Write(writer(func(p []byte) (int, error) {
		if b.Len() > 1<<14 && s.Len() > blockRows { // the first block is locked no more
			s.Delete("7", "r")
			s.Put(&query.Row{WorkflowID: "7", Run: "r", Type: "new", Sequence: 2})
			s.Delete("8", "r")
		}
		return b.Write(p)
	}), Mark{}); err != nil {
		t.Fatal(err)
	}
	read, _, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if r, ok := read.Get("7", "r"); !ok || r.Type != "new" || read.Len() != blockRows+1 {
		t.Errorf("%+v of %d rows", r, read.Len())
	}
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// Whatever a block is made of, it is refused, or its rows can be read and are written as the same.
func FuzzBlock(f *testing.F) {
	s := small()
	whole := s.blocks[0].append(nil, len(s.names))
	f.Add(whole)
	f.Add([]byte{})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		other := bytes.Clone(whole)
		for range 1 + r.IntN(3) {
			other[r.IntN(len(other))] = byte(r.Uint32())
		}
		for n := range r.IntN(3) { // most of a block is a set of rows
			other[1024+r.IntN(len(other)-1024)] = byte(n)
		}
		f.Add(other)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		names := []string{"k", "l"}
		b, err := decodeBlock(content, len(names))
		if err != nil {
			return
		}
		again, err := decodeBlock(b.append(nil, len(names)), len(names))
		if err != nil {
			t.Fatal(err)
		}
		b.live.each(func(row int) {
			if got, want := again.row(row, names), b.row(row, names); !reflect.DeepEqual(
				got,
				want,
			) {
				t.Fatalf("got %+v, want %+v", got, want)
			}
		})
		s := New(0)
		s.names = names
		if _, err := s.readBlock(content); err != nil {
			t.Fatal(err)
		}
		for r := range s.All {
			r.Type, r.Attributes = "other", map[string]string{"k": "other"}
			s.Put(r)
			if got, ok := s.Get(r.WorkflowID, r.Run); !ok || got.Type != "other" {
				t.Fatalf("got %+v", got)
			}
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add(written(f, small()))
	f.Add(written(f, New(0)))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, content []byte) {
		s, _, err := Read(bytes.NewReader(content))
		if err == nil {
			written(t, s)
		}
	})
}
