package index

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/droverhq/drover/ops/query"
)

// MaxGroups is how many groups there may be.
const MaxGroups = 100_000

// ErrGroups is for a query with more groups than that.
var ErrGroups = errors.New("there are more than 100,000 groups: ask for fewer rows")

// Group is how many rows have the same keys, one for each grouping as [query.Grouping.Key] says it.
type Group struct {
	Keys []string
	Rows int
}

// Count returns how many rows of several stores a query asks for. Its Group, Order and Limit make
// no difference.
func Count(stores []*Store, q *query.Query) (n int) {
	for _, s := range stores {
		scan(s, q, func(_ *block, rows *rowset) { n += rows.len() })
	}
	return n
}

// Totals are about all groups of a query, also those that its Limit leaves out.
type Totals struct{ Groups, Rows int }

// Groups returns the groups of a query: those with the most rows first, then by their keys, as many
// as q.Limit says, all if it is 0. The error is [ErrGroups].
func Groups(stores []*Store, q *query.Query) (groups []Group, all Totals, err error) {
	counts := make(map[[2]string]int)
	for _, s := range stores {
		scan(s, q, func(b *block, rows *rowset) { groupBlock(counts, q.Group, s.names, b, rows) })
	}
	if len(counts) > MaxGroups {
		return nil, Totals{}, ErrGroups
	}
	all.Groups = len(counts)
	for keys, n := range counts {
		all.Rows += n
		g := Group{Rows: n}
		for i := range q.Group {
			g.Keys = append(g.Keys, strings.Clone(keys[i]))
		}
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(b.Rows-a.Rows, slices.Compare(a.Keys, b.Keys))
	})
	if q.Limit > 0 && q.Limit < len(groups) {
		groups = groups[:q.Limit]
	}
	return groups, all, nil
}

// scan calls fn for each block with the rows that the query asks for, as long as it is locked.
func scan(s *Store, q *query.Query, fn func(b *block, rows *rowset)) {
	s.reading.RLock()
	where := compile(q.Where, s.names)
	s.reading.RUnlock()
	for _, b := range s.list() {
		s.reading.RLock()
		rows := b.live
		where.narrow(b, &rows)
		fn(b, &rows)
		s.reading.RUnlock()
	}
}
