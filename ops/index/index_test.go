package index_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/internal/sample"
	"github.com/droverhq/drover/ops/index"
	"github.com/droverhq/drover/ops/query"
	"github.com/droverhq/drover/schemas"
)

// check compares the answers to queries with those of the model.
func (m *model) check(t *testing.T, queries int) {
	t.Helper()
	rows := 0
	for p, s := range m.stores {
		rows += len(m.rows[p])
		if s.Len() != len(m.rows[p]) {
			t.Fatalf("partition %d has %d rows, want %d", p, s.Len(), len(m.rows[p]))
		}
	}
	for range queries {
		q := m.query()
		want := m.all(q)
		count := len(want)
		var got []query.Row
		after := ""
		for pages := 0; ; pages++ {
			page, err := index.Search(m.stores, q, after)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, page.Rows...)
			if page.Next == "" {
				break
			}
			if after = page.Next; len(page.Rows) != q.Limit {
				t.Fatalf(
					"a page that is not the last one has %d rows, want %d",
					len(page.Rows),
					q.Limit,
				)
			}
			if pages == 5 && len(want) > 10*q.Limit { // these are enough
				want = want[:len(got)]
				break
			}
		}
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("%s\n%d rows, want %d\n%s", q, len(got), len(want), gocmp.Diff(want, got))
		}
		if n := index.Count(m.stores, q); n != count {
			t.Fatalf("%s\ncounts %d, want %d", q, n, count)
		}
		q.Order, q.Group = nil, m.groupings()
		m.checkGroups(t, q)
	}
}

func (m *model) checkGroups(t *testing.T, q *query.Query) {
	t.Helper()
	counts := map[[2]string]int{}
	for _, r := range m.all(q) {
		var keys [2]string
		for i, g := range q.Group {
			keys[i] = g.Key(&r)
		}
		counts[keys]++
	}
	var want []index.Group
	for keys, n := range counts {
		want = append(want, index.Group{Keys: slices.Clone(keys[:len(q.Group)]), Rows: n})
	}
	slices.SortFunc(want, func(a, b index.Group) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), slices.Compare(a.Keys, b.Keys))
	})
	if q.Limit > 0 {
		want = want[:min(len(want), q.Limit)]
	}
	got, all, err := index.Groups(m.stores, q)
	if total := (index.Totals{Groups: len(counts), Rows: len(m.all(q))}); err != nil || all != total {
		t.Fatalf("%s\n%+v, want %+v: %v", q, all, total, err)
	}
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("%s\n%s", q, gocmp.Diff(want, got))
	}
}

// rowsOf are all rows of a store.
func rowsOf(s *index.Store) (all []query.Row) {
	for r := range s.All {
		all = append(all, *r)
	}
	return all
}

// again writes all stores, and goes on with what is read of that.
func (m *model) again(t *testing.T) {
	t.Helper()
	for p, s := range m.stores {
		var b bytes.Buffer
		mark := index.Mark{Position: m.seq, Incarnation: "of the stream"}
		if err := s.Write(&b, mark); err != nil {
			t.Fatal(err)
		}
		read, got, err := index.Read(&b)
		if err != nil || got != mark || read.Partition() != p {
			t.Fatalf("partition %d, %+v: %v", read.Partition(), got, err)
		}
		m.stores[p] = read
	}
}

// Any query on any rows gives what a filter over all of them gives: through inserts, updates,
// deletes and snapshots, and page by page.
func TestQueriesMeanWhatMatchesSays(t *testing.T) {
	for seed := range uint64(16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			sample.OneOfEight(t)
			m := newModel(seed, 1+int(seed%3))
			for range 6 {
				for range m.IntN(120) {
					m.step()
				}
				if m.IntN(3) == 0 {
					m.again(t)
				}
				m.check(t, 20)
			}
		})
	}
}

// The same with several blocks: the old ones lose their rows one by one, and are put together.
func TestManyBlocks(t *testing.T) {
	sample.OneOfEight(t)
	m := newModel(7, 1)
	var rows []*query.Row
	for range 20_000 {
		m.put(0, nil)
	}
	m.check(t, 2)
	for _, r := range m.rows[0] {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *query.Row) int { return cmp.Compare(a.Sequence, b.Sequence) })
	before := m.stores[0].Bytes()
	for i, r := range rows[:17_000] {
		switch {
		case i%10 == 0:
			m.put(0, r) // it stays, and is changed
		case !m.remove(r):
			t.Fatal("no row of", r.WorkflowID, r.Run)
		case m.remove(r):
			t.Fatal("two rows of", r.WorkflowID, r.Run)
		}
		if i%6_000 == 1 {
			m.check(t, 2)
		}
	}
	if after := m.stores[0].Bytes(); after > before/2 {
		t.Errorf(
			"%d bytes of %d are left for %d rows of %d",
			after,
			before,
			len(m.rows[0]),
			len(rows),
		)
	}
	m.again(t)
	m.check(t, 2)
	for _, r := range m.rows[0] {
		if got, ok := m.stores[0].Get(r.WorkflowID, r.Run); !ok || !reflect.DeepEqual(got, *r) {
			t.Fatalf("got %+v, want %+v", got, *r)
		}
	}
	seen := 0
	for r := range m.stores[0].All {
		if seen++; !reflect.DeepEqual(r, m.rows[0][[2]string{r.WorkflowID, r.Run}]) {
			t.Fatalf("%+v is not as it was put", r)
		}
	}
	if seen != len(m.rows[0]) {
		t.Errorf("goes through %d rows, want %d", seen, len(m.rows[0]))
	}
}

func TestPutAgain(t *testing.T) {
	s := index.New(3)
	r := query.Row{WorkflowID: "w", Run: "r", Type: "a", Tags: []string{"x"}, Sequence: 7}
	if s.Put(&query.Row{WorkflowID: "w"}) || s.Put(&query.Row{Run: "r"}) || !s.Put(&r) ||
		!s.Put(&r) {
		t.Error("a row with both ids is put, and no other one")
	}
	older := r
	older.Sequence, older.Type = 6, "b"
	if s.Put(&older) {
		t.Error("an older row is put")
	}
	got, ok := s.Get("w", "r")
	r.Partition = 3
	if !ok || !reflect.DeepEqual(got, r) || s.Len() != 1 {
		t.Errorf("got %+v of %d, want %+v", got, s.Len(), r)
	}
	if _, ok := s.Get("w", "other"); ok || s.Delete("w", "other") || !s.Delete("w", "r") ||
		s.Delete("w", "r") {
		t.Error("finds another run, or deletes it")
	}
	if s.Len() != 0 || len(rowsOf(s)) != 0 {
		t.Error("the row is still there")
	}
	if !s.Put(&older) {
		t.Error("what is deleted stays so")
	}
	if rows := rowsOf(s); len(rows) != 1 || rows[0].Type != "b" {
		t.Errorf("has %v", rows)
	}
}

// There is room for so many names of attributes; queries find those that are kept.
func TestNamesOfAttributes(t *testing.T) {
	s := index.New(0)
	for n := range index.MaxNames + 3 {
		s.Put(&query.Row{
			WorkflowID: "w", Run: fmt.Sprint(n), Attributes: map[string]string{fmt.Sprint("a", n): "v"},
		})
	}
	if got, want := s.Stats().Refused, []string{"a64", "a65", "a66"}; !slices.Equal(got, want) {
		t.Errorf("refused %v, want %v", got, want)
	}
	for name, want := range map[string]int{"a0": 1, "a63": 1, "a64": 0, "a99": 0} {
		q := &query.Query{Where: &query.Condition{
			Field: query.Field{Attribute: name}, Values: []query.Value{{Text: "v"}},
		}}
		if n := index.Count([]*index.Store{s}, q); n != want {
			t.Errorf("%d runs have %s, want %d", n, name, want)
		}
	}
}

// The closed runs that ended first leave, and the store says so.
func TestTrim(t *testing.T) {
	s := index.New(0)
	const all = 30_000
	for n := range all {
		r := query.Row{WorkflowID: fmt.Sprint("w", n), Run: "r", Started: 1, Sequence: uint64(n)}
		if n%3 > 0 {
			r.Closed = schemas.Timestamp(1 + n*7919%all) // in no order
		}
		s.Put(&r)
	}
	size := s.Bytes()
	if n := s.Trim(size); n != 0 {
		t.Errorf("drops %d rows though there is room", n)
	}
	dropped := s.Trim(size * 3 / 4)
	stats := s.Stats()
	if got := s.Bytes(); got > size*4/5 || got < size/2 || s.Len() != all-dropped ||
		stats.Dropped != int64(dropped) {
		t.Errorf(
			"%d bytes of %d are left, %d rows of %d, %d dropped",
			got,
			size,
			s.Len(),
			all,
			dropped,
		)
	}
	open := 0
	for r := range s.All {
		switch {
		case r.Closed == 0:
			open++
		case r.Closed <= stats.DroppedUntil:
			t.Fatalf(
				"a run that closed at %d is there, and one of %d is not",
				r.Closed,
				stats.DroppedUntil,
			)
		}
	}
	if open != all/3 {
		t.Errorf("%d open runs are left of %d", open, all/3)
	}
	s.Trim(1)
	if s.Len() != open || s.Trim(1) != 0 {
		t.Errorf("%d rows are left, want the %d open ones", s.Len(), open)
	}
	var b bytes.Buffer
	if err := s.Write(&b, index.Mark{}); err != nil {
		t.Fatal(err)
	}
	if read, _, err := index.Read(&b); err != nil || !reflect.DeepEqual(read.Stats(), s.Stats()) {
		t.Errorf("%+v is read, want %+v: %v", read.Stats(), s.Stats(), err)
	}
}

func TestCursorOfAnotherQuery(t *testing.T) {
	s := index.New(0)
	for n := range 3 {
		s.Put(&query.Row{WorkflowID: "w", Run: fmt.Sprint(n)})
	}
	q := &query.Query{Limit: 1}
	page, err := index.Search([]*index.Store{s}, q, "")
	if err != nil || page.Next == "" {
		t.Fatalf("%+v: %v", page, err)
	}
	q.Order = []query.Order{{Field: query.Field{Column: query.ColumnID}}}
	for _, cursor := range []string{page.Next, page.Next[1:], "x", "bnVsbA", "e30"} {
		if _, err := index.Search([]*index.Store{s}, q, cursor); !errors.Is(err, index.ErrCursor) {
			t.Errorf("%q: %v", cursor, err)
		}
	}
}

func TestTooManyGroups(t *testing.T) {
	sample.OneOfEight(t)
	s := index.New(0)
	for n := range index.MaxGroups + 1 {
		s.Put(&query.Row{WorkflowID: "w", Run: fmt.Sprint(n), Type: fmt.Sprint(n)})
	}
	q := &query.Query{
		Group: []query.Grouping{{Field: query.Field{Column: query.ColumnType}}},
		Limit: 3,
	}
	if _, _, err := index.Groups([]*index.Store{s}, q); !errors.Is(err, index.ErrGroups) {
		t.Errorf("got %v", err)
	}
	s.Delete("w", "0")
	if groups, all, err := index.Groups([]*index.Store{s}, q); len(groups) != 3 ||
		all.Groups != index.MaxGroups ||
		err != nil {
		t.Errorf("%v of %+v: %v", groups, all, err)
	}
}

// Queries beside a writer, a snapshot and blocks that are put together see each row that stays as
// it is exactly once.
func TestReadersBesideAWriter(t *testing.T) {
	s := index.New(0)
	put := func(kind string, n int) {
		s.Put(&query.Row{
			WorkflowID: fmt.Sprint(
				kind,
				n,
			), Run: "r", Type: kind, Started: schemas.Timestamp(n + 1),
			Attributes: map[string]string{"n": fmt.Sprint(n)},
		})
	}
	const stay = 2_000
	for n := range 16_000 {
		put("goes", n)
		if n%8 == 0 {
			put("stays", n)
		}
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for n := range 16_000 {
			s.Delete(fmt.Sprint("goes", n), "r")
			if n%4 == 0 {
				put("comes", n)
			}
		}
	}()
	q := &query.Query{
		Where: &query.Condition{
			Field: query.Field{Column: query.ColumnType}, Values: []query.Value{{Text: "stays"}},
		},
		Group: []query.Grouping{{Field: query.Field{Column: query.ColumnType}}},
	}
	read := func() {
		if n := index.Count([]*index.Store{s}, q); n != stay {
			t.Errorf("counts %d", n)
		}
		if g, _, err := index.Groups([]*index.Store{s}, q); err != nil || len(g) != 1 ||
			g[0].Rows != stay {
			t.Errorf("groups %v: %v", g, err)
		}
		if p, err := index.Search([]*index.Store{s}, q, ""); err != nil || len(p.Rows) != stay {
			t.Errorf("finds %d: %v", len(p.Rows), err)
		}
		var b bytes.Buffer
		if err := s.Write(&b, index.Mark{}); err != nil {
			t.Error(err)
		}
		if again, _, err := index.Read(&b); err != nil ||
			index.Count([]*index.Store{again}, q) != stay {
			t.Errorf("reads %v", err)
		}
	}
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for !t.Failed() {
				read()
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}
	readers.Wait()
	<-over
	read()
}
