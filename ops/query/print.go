package query

import (
	"strconv"
	"strings"
)

// String writes the query so that Parse reads the same. Times are absolute in it.
func (q *Query) String() string {
	var b strings.Builder
	if q.Where != nil {
		write(&b, q.Where)
	}
	for i, g := range q.Group {
		b.WriteString(before(i, " GROUP BY ") + g.String())
	}
	for i, o := range q.Order {
		b.WriteString(before(i, " ORDER BY ") + o.Field.String())
		if o.Descending {
			b.WriteString(" DESC")
		}
	}
	if q.Limit > 0 {
		b.WriteString(" LIMIT " + strconv.Itoa(q.Limit))
	}
	return strings.TrimPrefix(b.String(), " ")
}

func before(i int, first string) string {
	if i == 0 {
		return first
	}
	return ", "
}

func write(b *strings.Builder, e Expr) {
	switch e := e.(type) {
	case And:
		for i, term := range e {
			if i > 0 {
				b.WriteString(" AND ")
			}
			if _, ok := term.(Or); ok {
				b.WriteString("(")
				write(b, term)
				b.WriteString(")")
				continue
			}
			write(b, term)
		}
	case Or:
		for i, term := range e {
			if i > 0 {
				b.WriteString(" OR ")
			}
			write(b, term)
		}
	case *Condition:
		e.write(b)
	}
}

var signs = map[Op]string{
	Less: "<", LessEqual: "<=", Greater: ">", GreaterEqual: ">=",
	StartsWith: "STARTS_WITH", Contains: "CONTAINS",
}

func (c *Condition) write(b *strings.Builder) {
	b.WriteString(c.Field.String())
	sign, not := signs[c.Op], ""
	if c.Not {
		not = "NOT "
	}
	switch {
	case c.Op == IsNull:
		b.WriteString(" IS " + not + "NULL")
		return
	case c.Op == In && len(c.Values) > 1:
		b.WriteString(" " + not + "IN (")
		for i, v := range c.Values {
			b.WriteString(before(i, "") + v.String())
		}
		b.WriteString(")")
		return
	case c.Op == In && c.Not:
		sign = "!="
	case c.Op == In:
		sign = "="
	default:
		sign = not + sign
	}
	b.WriteString(" " + sign + " " + c.Values[0].String())
}

// String is the grouping as it stands in a query.
func (g Grouping) String() string {
	switch g.By {
	case Hour:
		return g.Field.String() + " BY hour"
	case Day:
		return g.Field.String() + " BY day"
	default:
		return g.Field.String()
	}
}
