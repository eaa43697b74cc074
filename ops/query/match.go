package query

import (
	"slices"
	"strings"
	"time"
)

// Matches tells whether a row is one that is asked for, whatever Group, Order and Limit are.
func (q *Query) Matches(r *Row) bool { return q.Where == nil || matches(q.Where, r) }

func matches(e Expr, r *Row) bool {
	in := func(term Expr) bool { return matches(term, r) }
	switch e := e.(type) {
	case And:
		return !slices.ContainsFunc(e, func(term Expr) bool { return !in(term) })
	case Or:
		return slices.ContainsFunc(e, in)
	case *Condition:
		return e.matches(r)
	}
	return false
}

func (c *Condition) matches(r *Row) bool {
	if c.Field.Column == ColumnTag {
		return c.MatchesTags(r.Tags)
	}
	if n, ok, whole := r.number(c.Field.Column); whole {
		return ok && c.MatchesInt(n) || !ok && c.MatchesAbsent()
	}
	return c.MatchesText(r.text(c.Field))
}

// MatchesAbsent is for rows that have not the field.
func (c *Condition) MatchesAbsent() bool { return c.Op == IsNull && !c.Not }

// MatchesText is for a field that is text, and for an attribute; the empty text is an absent one.
func (c *Condition) MatchesText(text string) bool {
	if text == "" {
		return c.MatchesAbsent()
	}
	if len(c.Values) > 0 && c.Values[0].Kind == Number {
		n, ok := ParseNumber(text)
		return ok && c.holds(n) != c.Not
	}
	return c.holds(Value{Text: text}) != c.Not
}

// MatchesInt is for a time, a length of time or a number that is there.
func (c *Condition) MatchesInt(n int64) bool {
	return c.holds(Value{Kind: c.Field.kind(), Int: n}) != c.Not
}

// MatchesTags is for the tags of a row, of which one is enough. No tags are an absent field.
func (c *Condition) MatchesTags(tags []string) bool {
	if len(tags) == 0 {
		return c.MatchesAbsent()
	}
	return slices.ContainsFunc(
		tags,
		func(t string) bool { return c.holds(Value{Text: t}) },
	) != c.Not
}

// holds judges a value that is there, without Not.
func (c *Condition) holds(v Value) bool {
	switch c.Op {
	case In:
		return slices.Contains(c.Values, v)
	case Less:
		return v.Compare(c.Values[0]) < 0
	case LessEqual:
		return v.Compare(c.Values[0]) <= 0
	case Greater:
		return v.Compare(c.Values[0]) > 0
	case GreaterEqual:
		return v.Compare(c.Values[0]) >= 0
	case StartsWith:
		return strings.HasPrefix(v.Text, c.Values[0].Text)
	case Contains:
		return strings.Contains(v.Text, c.Values[0].Text)
	default:
		return false // IsNull
	}
}

// number returns the field of a row that is one; ok is false if the row has it not, and whole if
// the field is no number.
func (r *Row) number(c Column) (n int64, ok, whole bool) {
	switch c {
	case ColumnStarted:
		return int64(r.Started), r.Started != 0, true
	case ColumnClosed:
		return int64(r.Closed), r.Closed != 0, true
	case ColumnTook:
		return int64(r.Closed - r.Started), r.Started != 0 && r.Closed != 0, true
	case ColumnEvents:
		return r.Events, true, true
	default:
		return 0, false, false
	}
}

// text returns the field of a row that is text, other than its tags.
func (r *Row) text(f Field) string {
	switch f.Column {
	case ColumnID:
		return r.WorkflowID
	case ColumnRun:
		return r.Run
	case ColumnType:
		return r.Type
	case ColumnVersion:
		return r.Version
	case ColumnStatus:
		return string(r.Status)
	case ColumnParent:
		return r.Parent
	case ColumnFirst:
		return r.First
	case ColumnReason:
		return r.Reason
	case ColumnStartMode:
		return r.StartMode
	case ColumnSchedule:
		return r.Schedule
	default:
		return r.Attributes[f.Attribute]
	}
}

// Compare is negative if row a comes before row b in the order that is asked for, positive if it
// comes after it, and 0 only for the same run.
func (q *Query) Compare(a, b *Row) int {
	order := q.Order
	if len(order) == 0 {
		order = []Order{{Field: Field{Column: ColumnStarted}, Descending: true}}
	}
	for _, o := range order {
		if d := o.compare(a, b); d != 0 {
			return d
		}
	}
	if d := strings.Compare(a.Run, b.Run); d != 0 {
		return d
	}
	return strings.Compare(a.WorkflowID, b.WorkflowID)
}

func (o Order) compare(a, b *Row) int {
	n, aok, whole := a.number(o.Field.Column)
	m, bok, _ := b.number(o.Field.Column)
	v, w := Value{Int: n, Kind: Number}, Value{Int: m, Kind: Number}
	if !whole {
		v, w = Value{Text: a.text(o.Field)}, Value{Text: b.text(o.Field)}
		aok, bok = v.Text != "", w.Text != ""
	}
	if o.Field.Column == ColumnAttribute {
		return o.CompareAttributes(v.Text, w.Text)
	}
	switch {
	case !aok && !bok:
		return 0
	case !aok:
		return 1
	case !bok:
		return -1
	case o.Descending:
		return w.Compare(v)
	}
	return v.Compare(w)
}

// CompareAttributes compares two values of an attribute as Compare does: numbers before other
// texts, and what is empty last in both directions.
func (o Order) CompareAttributes(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == "":
		return 1
	case b == "":
		return -1
	}
	v, aok := ParseNumber(a)
	w, bok := ParseNumber(b)
	d := v.Compare(w)
	switch {
	case aok && !bok:
		d = -1
	case !aok && bok:
		d = 1
	case !aok || d == 0: // 1 and 1.0 are one number
		d = strings.Compare(a, b)
	}
	if o.Descending {
		return -d
	}
	return d
}

// Key is what a row has in common with the others of its group: a text, the beginning of an hour
// such as 2026-01-31T08:00:00Z, or a day such as 2026-01-31. It is empty if the row has not the
// field.
func (g Grouping) Key(r *Row) string {
	n, ok, whole := r.number(g.Field.Column)
	switch {
	case !whole:
		return r.text(g.Field)
	case !ok:
		return ""
	}
	return g.By.Key(n)
}

// Key is the name of the bucket that a time is in.
func (b Bucket) Key(nanos int64) string {
	t := time.Unix(0, nanos).UTC()
	if b == Day {
		return t.Format(time.DateOnly)
	}
	return t.Truncate(time.Hour).Format(time.RFC3339)
}
