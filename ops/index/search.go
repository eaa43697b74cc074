package index

import (
	"slices"

	"github.com/droverhq/drover/ops/query"
)

// Page is some of the rows that a query asks for, in its order.
type Page struct {
	Rows []query.Row
	Next string // the cursor of the page after this one; empty: this is the last one
}

// Search returns the rows of several stores that a query asks for, of those after the cursor the
// first ones, as many as q.Limit says; all if it is 0. The error is [ErrCursor].
//
// Pages that follow each other have each row that stays as it is exactly once.
func Search(stores []*Store, q *query.Query, after string) (Page, error) {
	f := search{order: orderOf(q)}
	if q.Limit > 0 {
		f.most = q.Limit + 1 // one more, to know whether there is a next page
	}
	var err error
	if f.after, err = f.order.after(after); err != nil {
		return Page{}, err
	}
	var parts []part
	for _, s := range stores {
		parts = append(parts, f.parts(s, q)...)
	}
	f.sort(parts)
	for _, p := range parts {
		if f.done(p) {
			break
		}
		if !f.skips(p) {
			f.read(p)
		}
	}
	f.cut()
	var page Page
	if q.Limit > 0 && len(f.found) > q.Limit {
		f.found = f.found[:q.Limit]
		page.Next = f.order.cursor(&f.found[q.Limit-1].rank)
	}
	for _, c := range f.found {
		page.Rows = append(page.Rows, *c.made)
	}
	return page, nil
}

// search is a search that goes on.
type search struct {
	order order
	after *rank
	most  int // how many rows to find; 0: all
	found []found
	last  *rank // the last of the most rows, once there are so many
	next  rank  // of the row that is looked at
}

// found is a row that may be among the first ones.
type found struct {
	rank
	block *block
	row   int
	made  *query.Row // nil until the block has been read
}

// part is a block of a store, and what is made for a query on it.
type part struct {
	store      *Store
	block      *block
	where      node
	attributes []int // the numbers of those that rows are sorted by
	times      span  // of what they are sorted by first, if that is a time
}

// parts are the blocks of a store as they are now.
func (f *search) parts(s *Store, q *query.Query) (parts []part) {
	s.reading.RLock()
	defer s.reading.RUnlock()
	p := part{store: s, where: compile(q.Where, s.names)}
	for _, by := range f.order {
		p.attributes = append(p.attributes, slices.Index(s.names, by.Field.Attribute))
	}
	for _, b := range s.blocks {
		if b != nil {
			p.block = b
			p.times, _ = b.span(f.order[0].Field.Column)
			parts = append(parts, p)
		}
	}
	return parts
}

// sort brings those blocks to the front which may have the first rows.
func (f *search) sort(parts []part) {
	slices.SortStableFunc(parts, func(a, b part) int {
		return compareKeys(f.order[0], f.best(a), f.best(b))
	})
}

// best is the first key that a row of a block may have, if it is a time.
func (f *search) best(p part) key {
	if f.order[0].Descending {
		return key{has: p.times.some, number: int64(p.times.last)}
	}
	return key{has: p.times.some, number: int64(p.times.first)}
}

// worst is the last key of the rows of a block that have one.
func (f *search) worst(p part) key {
	if f.order[0].Descending {
		return key{has: p.times.some, number: int64(p.times.first)}
	}
	return key{has: p.times.some, number: int64(p.times.last)}
}

// byTime tells whether a time is what the rows are sorted by first.
func (f *search) byTime() bool {
	c := f.order[0].Field.Column
	return c == query.ColumnStarted || c == query.ColumnClosed
}

// done tells whether enough rows are found, and this block has none that comes before one of them,
// nor have the ones after it.
func (f *search) done(p part) bool {
	return f.byTime() && f.last != nil && compareKeys(f.order[0], f.last.keys[0], f.best(p)) < 0
}

// skips tells whether all rows of a block come before the cursor.
func (f *search) skips(p part) bool {
	return f.byTime() && f.after != nil && !p.times.lacks &&
		compareKeys(f.order[0], f.worst(p), f.after.keys[0]) < 0
}

// read finds the rows of a block.
func (f *search) read(p part) {
	s := p.store
	s.reading.RLock()
	defer s.reading.RUnlock()
	rows := p.block.live
	p.where.narrow(p.block, &rows)
	rows.each(func(row int) { f.look(p, row) })
	f.cut()
	for i := range f.found {
		if c := &f.found[i]; c.made == nil {
			c.made = s.row(c.block, c.row)
		}
	}
}

// look takes a row if it may be among the first ones after the cursor.
func (f *search) look(p part, row int) {
	f.order.read(&f.next, p.block, row, p.attributes)
	if f.after != nil && f.order.compare(&f.next, f.after) <= 0 ||
		f.last != nil && f.order.compare(&f.next, f.last) > 0 {
		return
	}
	c := found{rank: f.next, block: p.block, row: row}
	c.keys = slices.Clone(f.next.keys)
	f.found = append(f.found, c)
	if len(f.found) == 2*f.most {
		f.cut()
	}
}

// cut sorts the rows, and leaves as many as are wanted.
func (f *search) cut() {
	slices.SortFunc(f.found, func(a, b found) int { return f.order.compare(&a.rank, &b.rank) })
	if f.most > 0 && len(f.found) >= f.most {
		clear(f.found[f.most:])
		f.found = f.found[:f.most]
		last := f.found[f.most-1].rank
		f.last = &last
	}
}
