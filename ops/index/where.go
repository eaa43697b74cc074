package index

import (
	"slices"

	"github.com/droverhq/drover/ops/query"
)

// node is a condition of a query, made for one store.
type node interface {
	// narrow takes the rows away that do not match.
	narrow(b *block, rows *rowset)
	// cost says which of several to ask first: the lowest one.
	cost() int
}

// compile makes the tree for a condition. The names are those of the store's attributes.
func compile(e query.Expr, names []string) node {
	switch e := e.(type) {
	case query.And:
		return and(compileAll(e, names))
	case query.Or:
		return or(compileAll(e, names))
	case *query.Condition:
		switch e.Field.Column {
		case query.ColumnStarted, query.ColumnClosed, query.ColumnTook, query.ColumnEvents:
			return &numbers{e}
		case query.ColumnRun:
			return newRuns(e)
		default:
			return newValues(e, names)
		}
	}
	return and(nil)
}

func compileAll(terms []query.Expr, names []string) (all []node) {
	for _, term := range terms {
		all = append(all, compile(term, names))
	}
	slices.SortStableFunc(all, func(a, b node) int { return a.cost() - b.cost() })
	return all
}

type and []node

func (a and) cost() int { return 3 }

func (a and) narrow(b *block, rows *rowset) {
	for _, term := range a {
		if *rows == (rowset{}) {
			return
		}
		term.narrow(b, rows)
	}
}

type or []node

func (o or) cost() int { return 3 }

func (o or) narrow(b *block, rows *rowset) {
	var found rowset
	for _, term := range o {
		rest := *rows
		for w := range rest {
			rest[w] &^= found[w]
		}
		term.narrow(b, &rest)
		for w := range rest {
			found[w] |= rest[w]
		}
	}
	*rows = found
}

// numbers is a condition on times, lengths of time or counts.
type numbers struct{ *query.Condition }

func (n *numbers) cost() int { return 0 }

func (n *numbers) narrow(b *block, rows *rowset) {
	if n.none(b) {
		*rows = rowset{}
		return
	}
	rows.keep(func(row int) bool {
		v, ok := b.number(n.Field.Column, row)
		if !ok {
			return n.MatchesAbsent()
		}
		return n.MatchesInt(v)
	})
}

// none tells whether the times of a block are so that no row matches.
func (n *numbers) none(b *block) bool {
	s, ok := b.span(n.Field.Column)
	switch n.Op {
	case query.Less, query.LessEqual:
		return ok && (!s.some || !n.MatchesInt(int64(s.first)))
	case query.Greater, query.GreaterEqual:
		return ok && (!s.some || !n.MatchesInt(int64(s.last)))
	default:
		return false
	}
}

// number is a field of a row that is a number, and whether the row has it.
func (b *block) number(c query.Column, row int) (n int64, ok bool) {
	started, closed := b.started[row], b.closed[row]
	switch c {
	case query.ColumnStarted:
		return int64(started), started != 0
	case query.ColumnClosed:
		return int64(closed), closed != 0
	case query.ColumnTook:
		return int64(closed - started), started != 0 && closed != 0
	default:
		return b.events[row], true
	}
}

// span is from where to where a column of times reaches. Other columns have none.
func (b *block) span(c query.Column) (s span, ok bool) {
	switch c {
	case query.ColumnStarted:
		return b.starts, true
	case query.ColumnClosed:
		return b.closes, true
	default:
		return s, false
	}
}

// runs is a condition on run ids.
type runs struct {
	*query.Condition
	packs map[[16]byte]bool // the values of In, if they all are ULIDs
}

func newRuns(c *query.Condition) *runs {
	packs := make(map[[16]byte]bool)
	for _, v := range c.Values {
		if pack, ok := packed(v.Text); ok {
			packs[pack] = true
		}
	}
	if c.Op != query.In || len(packs) < len(c.Values) {
		packs = nil
	}
	return &runs{c, packs}
}

func (r *runs) cost() int { return 2 }

func (r *runs) narrow(b *block, rows *rowset) {
	if r.packs != nil {
		text := &b.text[query.ColumnRun]
		rows.keep(func(row int) bool {
			return (text.number(row) == 0 && r.packs[b.runs[row]]) != r.Not
		})
		return
	}
	rows.keep(func(row int) bool { return r.MatchesText(b.run(row)) })
}

// values is a condition on a column of texts.
type values struct {
	*query.Condition
	attribute int             // its number, -1 if the store has none of that name
	in        map[string]bool // the values of In, but of tags and numbers
	matches   [maxValues + 1]bool
}

func newValues(c *query.Condition, names []string) *values {
	v := &values{Condition: c, attribute: slices.Index(names, c.Field.Attribute)}
	if c.Op == query.In && c.Values[0].Kind == query.Text && c.Field.Column != query.ColumnTag {
		v.in = make(map[string]bool)
		for _, one := range c.Values {
			v.in[one.Text] = true
		}
	}
	return v
}

func (v *values) cost() int {
	if v.Field.Column == query.ColumnID || v.Op == query.Contains {
		return 2
	}
	return 1
}

// column is the one that a field has in a block, an empty one if it has none.
func (b *block) column(c query.Column, attribute int) *texts {
	switch {
	case c != query.ColumnAttribute:
		return &b.text[c]
	case attribute >= 0 && attribute < len(b.attributes):
		return &b.attributes[attribute]
	}
	return &texts{}
}

func (v *values) match(text string) bool {
	switch {
	case v.in != nil:
		return text != "" && v.in[text] != v.Not
	case v.Field.Column == query.ColumnTag:
		return v.MatchesTags(unpackTags(text))
	}
	return v.MatchesText(text)
}

// narrow asks for each value once, unless there are few rows.
func (v *values) narrow(b *block, rows *rowset) {
	column := b.column(v.Field.Column, v.attribute)
	if rows.len() <= column.values() {
		rows.keep(func(row int) bool { return v.match(column.of(row)) })
		return
	}
	found := false
	for n := range column.values() + 1 {
		v.matches[n] = v.match(column.value(uint16(n)))
		found = found || v.matches[n]
	}
	if !found {
		*rows = rowset{}
		return
	}
	rows.keep(func(row int) bool { return v.matches[column.number(row)] })
}
