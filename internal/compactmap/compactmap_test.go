package compactmap_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/internal/compactmap"
)

// spot is a value that is larger than a word.
type spot struct {
	at   int64
	next uint32
}

// entry is what the model knows of one.
type entry struct {
	id    compactmap.ID
	more  string
	value spot
}

// world is a map beside its model, a Go map.
type world struct {
	m     *compactmap.Map[spot]
	model map[string]entry
	texts []string // of all that were ever added
}

func (w *world) add(t *rapid.T) {
	text := rapid.StringN(0, 12, -1).Draw(t, "text")
	if rapid.IntRange(0, 40).Draw(t, "long") == 0 {
		text += strings.Repeat("x", rapid.IntRange(0, 200_000).Draw(t, "more of it"))
	}
	id, found := w.m.Find(text)
	if e, want := w.model[text]; found != want || found && id != e.id {
		t.Fatalf("Find before Add: got %d, %v; want %d, %v", id, found, e.id, want)
	}
	if found {
		return
	}
	more := rapid.StringN(0, 20, -1).Draw(t, "beside it")
	id, ok := w.m.Add(text, []byte(more))
	if !ok {
		t.Fatal("Add says that the map is full")
	}
	if got := *w.m.At(id); got != (spot{}) {
		t.Fatalf("the value of a new entry is %v, want zero", got)
	}
	v := spot{rapid.Int64().Draw(t, "at"), rapid.Uint32().Draw(t, "next")}
	*w.m.At(id) = v
	w.model[text] = entry{id, more, v}
	w.texts = append(w.texts, text)
}

// burst adds many, so that chunks, blocks and tables are filled.
func (w *world) burst(t *rapid.T) {
	name, long := rapid.StringN(1, 4, -1).Draw(t, "name"), rapid.IntRange(0, 1000).Draw(t, "length")
	for i := range rapid.IntRange(1, 300).Draw(t, "so many") {
		text := fmt.Sprint(name, i, strings.Repeat("-", long))
		if _, ok := w.model[text]; ok {
			continue
		}
		id, ok := w.m.Add(text, nil)
		if !ok {
			t.Fatal("Add says that the map is full")
		}
		w.model[text] = entry{id: id}
		w.texts = append(w.texts, text)
	}
}

func (w *world) remove(t *rapid.T) {
	if len(w.texts) == 0 {
		return
	}
	// All, some of them in order, or one.
	from := rapid.IntRange(0, len(w.texts)-1).Draw(t, "from")
	n, step := rapid.SampledFrom([]int{1, 1, 100, len(w.texts)}).Draw(t, "so many"), rapid.IntRange(1, 5).Draw(t, "step")
	for i := from; i < len(w.texts) && i < from+n; i += step {
		text := w.texts[i]
		e, ok := w.model[text]
		if !ok {
			continue
		}
		w.m.Delete(e.id)
		delete(w.model, text)
		if w.m.Has(e.id) {
			t.Fatalf("there still is an entry %d", e.id)
		}
		if _, found := w.m.Find(text); found {
			t.Fatalf("%.20q is still found", text)
		}
	}
}

func (w *world) check(t *rapid.T) {
	if got, want := w.m.Len(), len(w.model); got != want {
		t.Fatalf("got %d entries, want %d", got, want)
	}
	ids, listed := make(map[compactmap.ID]bool, len(w.model)), slices.Collect(w.m.All())
	if !slices.IsSorted(listed) || len(listed) != len(w.model) {
		t.Fatalf("All gives %d entries, want %d in the order of their numbers", len(listed), len(w.model))
	}
	for text, e := range w.model {
		id, found := w.m.Find(text)
		if !found || id != e.id || !w.m.Has(id) || ids[id] {
			t.Fatalf("%.20q: got entry %d, %v; want %d, for this text alone", text, id, found, e.id)
		}
		ids[id] = true
		if _, all := slices.BinarySearch(listed, id); !all {
			t.Fatalf("entry %d is not among all", id)
		}
		if got := string(w.m.Text(id)); got != text {
			t.Fatalf("entry %d: got text %.20q, want %.20q", id, got, text)
		}
		if got := string(w.m.More(id)); got != e.more {
			t.Fatalf("entry %d: got %q beside the text, want %q", id, got, e.more)
		}
		if got := *w.m.At(id); got != e.value {
			t.Fatalf("entry %d: got value %v, want %v", id, got, e.value)
		}
	}
}

// Whatever is added and deleted in whatever order, the map holds what a Go map would.
func TestMapIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{m: compactmap.New[spot](compactmap.MaxLen), model: map[string]entry{}}
		t.Repeat(map[string]func(*rapid.T){"add": w.add, "burst": w.burst, "delete": w.remove, "": w.check})
	})
}

// An entry takes what its comment says, and no more when others have come and gone.
func TestEntriesAreSmall(t *testing.T) {
	const n, each = 100_000, 76 // bytes, with a text of 39 bytes and a value of 16
	text := func(i int) string { return fmt.Sprintf("sleeper-%05d.01JABCDEFGHJKMNPQRSTVWXYZ0", i) }
	before := alive()
	m := compactmap.New[spot](compactmap.MaxLen)
	for i := range n {
		m.Add(text(i), nil)
	}
	if got := (alive() - before) / n; got > each {
		t.Errorf("got %d bytes an entry, want at most %d", got, each)
	}
	for i := range n {
		if i%10 != 0 {
			id, _ := m.Find(text(i))
			m.Delete(id)
		}
	}
	// A tenth stays. Its numbers are scattered over all blocks, which are 20 bytes an entry; texts and index are moved together.
	if got := (alive() - before) / n; got > 20+each*2/10 {
		t.Errorf("got %d bytes an entry that there was with a tenth of them left, want at most %d", got, 20+each*2/10)
	}
	for i := range n / 10 {
		id, _ := m.Find(text(i * 10))
		m.Delete(id)
	}
	if got := alive() - before; got > 256<<10 {
		t.Errorf("got %d bytes for an empty map, want at most 256 KiB", got)
	}
	runtime.KeepAlive(m)
}

// alive is how many bytes the heap holds.
func alive() int {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int(s.HeapAlloc)
}

// A map takes as many as it was made for, and again when one is gone.
func TestFullMapTakesNoMore(t *testing.T) {
	m := compactmap.New[spot](2)
	var last compactmap.ID
	for i, want := range []bool{true, true, false, false} {
		id, ok := m.Add(fmt.Sprint(i), nil)
		if ok != want || m.Len() != min(i+1, 2) {
			t.Errorf("entry %d: got %v and %d entries, want %v", i, ok, m.Len(), want)
		}
		if ok {
			last = id
		}
	}
	m.Delete(last)
	if _, ok := m.Add("another", nil); !ok {
		t.Error("a map with room for one more is full")
	}
}

// A text that is longer than a chunk leaves nothing after that others could be written to.
func TestLongTextsComeAndGo(t *testing.T) {
	m := compactmap.New[spot](compactmap.MaxLen)
	for round := range 3 {
		long, ok := m.Add(strings.Repeat("x", 150_000), nil)
		if !ok {
			t.Fatal("Add says that the map is full")
		}
		m.Delete(long)
		for i := range 1000 {
			text := fmt.Sprint(round, "-", i, strings.Repeat("-", 200))
			id, _ := m.Add(text, nil)
			if got := string(m.Text(id)); got != text {
				t.Fatalf("got text %.20q, want %.20q", got, text)
			}
		}
		for i := range 1000 {
			text := fmt.Sprint(round, "-", i, strings.Repeat("-", 200))
			id, ok := m.Find(text)
			if !ok {
				t.Fatalf("round %d: %.20q is not found", round, text)
			}
			m.Delete(id)
		}
	}
}

func BenchmarkAddFindDelete(b *testing.B) {
	m := compactmap.New[spot](compactmap.MaxLen)
	for i := range 100_000 {
		m.Add(fmt.Sprint("sleeper-", i), nil)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.Add("another", nil)
		id, _ := m.Find("another")
		m.Delete(id)
	}
}
