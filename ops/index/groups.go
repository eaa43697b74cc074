package index

import (
	"slices"
	"time"

	"github.com/droverhq/drover/ops/query"
)

// keys numbers the keys that the rows of one block have in one grouping.
type keys struct {
	size   int // all numbers are less
	number func(row int) int
	name   func(number int) string // a view
}

// keysOf returns the keys of a block; attribute is the number of the one that is grouped by.
func keysOf(g query.Grouping, b *block, attribute int) keys {
	times, ok := b.span(g.Field.Column)
	if !ok {
		c := b.column(g.Field.Column, attribute)
		return keys{
			size:   c.values() + 1,
			number: func(row int) int { return int(c.number(row)) },
			name:   func(n int) string { return c.value(uint16(n)) },
		}
	}
	length := int64(time.Hour)
	if g.By == query.Day {
		length *= 24
	}
	first := floor(int64(times.first), length)
	return keys{
		size: int(floor(int64(times.last), length)-first) + 2,
		number: func(row int) int {
			t, ok := b.number(g.Field.Column, row)
			if !ok {
				return 0
			}
			return int(floor(t, length)-first) + 1
		},
		name: func(n int) string {
			switch n {
			case 0:
				return ""
			case 1:
				return g.By.Key(int64(times.first)) // the hour may begin before there are times
			}
			return g.By.Key((first + int64(n) - 1) * length)
		},
	}
}

// floor is n/by, rounded down.
func floor(n, by int64) int64 {
	if n%by < 0 {
		return n/by - 1
	}
	return n / by
}

// groupBlock adds the rows of a block to the groups; the keys that it enters are views.
func groupBlock(
	groups map[[2]string]int,
	by []query.Grouping,
	names []string,
	b *block,
	rows *rowset,
) {
	if len(groups) > MaxGroups {
		return
	}
	all := [2]keys{none, none}
	for i, g := range by {
		all[i] = keysOf(g, b, slices.Index(names, g.Field.Attribute))
	}
	first, second := all[0], all[1]
	add := func(n, rows int) {
		groups[[2]string{first.name(n / second.size), second.name(n % second.size)}] += rows
	}
	if size := first.size * second.size; size <= 1<<16 {
		counts := make([]int, size)
		rows.each(func(row int) { counts[first.number(row)*second.size+second.number(row)]++ })
		for n, rows := range counts {
			if rows > 0 {
				add(n, rows)
			}
		}
		return
	}
	counts := make(map[int]int)
	rows.each(func(row int) { counts[first.number(row)*second.size+second.number(row)]++ })
	for n, rows := range counts {
		add(n, rows)
	}
}

// none is for a grouping that is not asked for.
var none = keys{
	size: 1, number: func(int) int { return 0 }, name: func(int) string { return "" },
}
