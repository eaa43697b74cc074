package query

import (
	"math"
	"slices"
)

// query reads all of it.
func (p *parser) query() (q *Query, err error) {
	q = &Query{}
	if !p.atClause() {
		if q.Where, err = p.or(); err != nil {
			return nil, err
		}
	}
	if p.skip("GROUP") {
		if err := p.groups(q); err != nil {
			return nil, err
		}
	}
	if p.skip("ORDER") {
		if err := p.orders(q); err != nil {
			return nil, err
		}
	}
	if p.skip("LIMIT") {
		n, ok := ParseNumber(p.here().text)
		if !ok || p.here().kind != wordToken || n.Fraction || n.Int < 1 || n.Int > math.MaxInt32 {
			return nil, p.refuse("", "a number from 1 on")
		}
		p.take()
		q.Limit = int(n.Int)
	}
	switch {
	case p.here().kind == endToken:
		return q, nil
	case q.Limit > 0:
		return nil, p.refuse("", "the end of the query")
	case q.Order != nil:
		return nil, p.refuse("", "ASC, DESC, a comma, LIMIT or the end of the query",
			"DESC", "ASC", "LIMIT")
	case q.Group != nil:
		return nil, p.refuse("", "a comma, LIMIT or the end of the query", "LIMIT")
	}
	return nil, p.refuse("", "AND, OR, GROUP BY, ORDER BY, LIMIT or the end of the query",
		"AND", "OR", "GROUP", "ORDER", "LIMIT")
}

// groupColumns are what rows are grouped by.
var groupColumns = []Column{
	ColumnAttribute, ColumnStatus, ColumnType, ColumnParent, ColumnReason, ColumnStarted,
	ColumnClosed,
}

// groups reads GROUP BY.
func (p *parser) groups(q *Query) error {
	if !p.here().is("BY") {
		return p.refuse("", "BY after GROUP")
	}
	for {
		p.take() // BY or a comma
		t := p.here()
		f, name, err := p.name()
		g := Grouping{Field: f}
		switch {
		case err != nil:
			return err
		case len(q.Group) == 2:
			return refuse(p.text, t, "", "at most two fields of GROUP BY", "")
		case !slices.Contains(groupColumns, f.Column):
			return refuse(p.text, t, "", "status, type, parent, reason, started BY hour or day, "+
				"closed BY hour or day, or an attribute", "")
		}
		if f.kind() == Instant {
			by := p.skip("BY")
			switch {
			case by && p.skip("hour"):
				g.By = Hour
			case by && p.skip("day"):
				g.By = Day
			case by:
				return p.refuse(name, "hour or day", "hour", "day")
			default:
				return p.refuse(name, "BY hour or BY day")
			}
		}
		if slices.Contains(q.Group, g) {
			return refuse(p.text, t, "", "each field once", "")
		}
		q.Group = append(q.Group, g)
		if !p.here().is(",") {
			return nil
		}
	}
}

// orders reads ORDER BY.
func (p *parser) orders(q *Query) error {
	switch {
	case !p.here().is("BY"):
		return p.refuse("", "BY after ORDER")
	case q.Group != nil:
		return p.refuse("", "no order of groups: the largest comes first")
	}
	for {
		p.take() // BY or a comma
		t := p.here()
		f, _, err := p.name()
		switch {
		case err != nil:
			return err
		case f.Column == ColumnTag:
			return refuse(p.text, t, "", "another field, as a workflow may have several tags", "")
		case slices.ContainsFunc(q.Order, func(o Order) bool { return o.Field == f }):
			return refuse(p.text, t, "", "each field once", "")
		}
		o := Order{Field: f, Descending: p.skip("DESC")}
		if !o.Descending {
			p.skip("ASC")
		}
		q.Order = append(q.Order, o)
		if !p.here().is(",") {
			return nil
		}
	}
}
