package index

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/ops/query"
)

// order is what rows are sorted by, as [query.Query.Compare] does it, made for one query.
type order []query.Order

func orderOf(q *query.Query) order {
	if len(q.Order) > 0 {
		return q.Order
	}
	return order{{Field: query.Field{Column: query.ColumnStarted}, Descending: true}}
}

// key is what a row has in a field that it is sorted by: a number, or a text if the field is one.
type key struct {
	has    bool
	number int64
	text   string
}

// rank is where a row stands in the order. Its texts are views.
type rank struct {
	keys []key
	run  string // empty if it is packed
	pack [16]byte
	id   string
}

func (r *rank) runText() string {
	if r.run != "" {
		return r.run
	}
	return ulid.ULID(r.pack).String()
}

// read makes r the rank of a row. The attributes are the numbers that the fields have in the store.
func (o order) read(r *rank, b *block, row int, attributes []int) {
	r.keys = r.keys[:0]
	for i, by := range o {
		c := by.Field.Column
		switch c {
		case query.ColumnStarted, query.ColumnClosed, query.ColumnTook, query.ColumnEvents:
			if n, ok := b.number(c, row); ok {
				r.keys = append(r.keys, key{has: true, number: n})
			} else {
				r.keys = append(r.keys, key{})
			}
		case query.ColumnRun:
			r.keys = append(r.keys, key{has: true, text: b.run(row)})
		default:
			text := b.column(c, attributes[i]).of(row)
			r.keys = append(r.keys, key{has: text != "", text: text})
		}
	}
	r.run, r.pack = b.text[query.ColumnRun].of(row), b.runs[row]
	r.id = b.id(row)
}

func (o order) compare(a, b *rank) int {
	for i, by := range o {
		if d := compareKeys(by, a.keys[i], b.keys[i]); d != 0 {
			return d
		}
	}
	return cmp.Or(compareRuns(a, b), strings.Compare(a.id, b.id))
}

func compareKeys(by query.Order, a, b key) int {
	switch {
	case by.Field.Column == query.ColumnAttribute:
		return by.CompareAttributes(a.text, b.text)
	case a.has != b.has && a.has:
		return -1
	case a.has != b.has:
		return 1
	case by.Descending:
		a, b = b, a
	}
	return cmp.Or(cmp.Compare(a.number, b.number), strings.Compare(a.text, b.text))
}

// compareRuns compares two run ids as texts. Packed ones compare by their bytes.
func compareRuns(a, b *rank) int {
	if a.run == "" && b.run == "" {
		return bytes.Compare(a.pack[:], b.pack[:])
	}
	return strings.Compare(a.runText(), b.runText())
}
