package query_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/droverhq/drover/ops/query"
	"github.com/droverhq/drover/schemas"
)

func TestPrint(t *testing.T) {
	for text, want := range map[string]string{
		"":                                              "",
		"status=failed type=order":                      "status = 'failed' AND type = 'order'",
		"workflowtype=5 priority=5.0":                   "type = '5' AND priority = 5",
		"NOT (StartTime < now-1h OR x=1)":               "started >= '2026-11-29T11:00:00Z' AND x != 1",
		"events between 1 and 2 or x = 3":               "events >= 1 AND events <= 2 OR x = 3",
		"((a=1 or b=2) and c=3) or (d=4)":               "(a = 1 OR b = 2) AND c = 3 OR d = 4",
		"took>90m and x in ('a','a',\"b\")":             "took > 1h30m AND x IN ('a', 'b')",
		`x = "\t\r\n\u00e9\"\\"`:                        `x = '\u0009\u000d\né"\\'`,
		"started > 0001-01-01 AND started < 9999-01-01": "started > '1677-09-21T00:12:43.145224192Z' AND started < '2262-04-11T23:47:16.854775807Z'",
		"x in (1, 1.0)":                                 "x = 1",
		"not tag starts_with 'a\"'' '":                  `tag NOT STARTS_WITH 'a"\' '`,
		"attr.type=x and attr.and=y":                    "attr.type = 'x' AND attr.and = 'y'",
		"`two words`='x\ty' and attr.5=2":               "`two words` = 'x\\u0009y' AND attr.5 = 2",
		"`attr.tags`=a":                                 "attr.tags = 'a'",
		"status != closed":                              "status NOT IN ('completed', 'failed', 'canceled', 'terminated', 'timedOut', 'continuedAsNew')",
		"closed is null and not run is null group by Type, started by HOUR limit 3": "closed IS NULL AND run IS NOT NULL GROUP BY type, started BY hour LIMIT 3",
		"order by closed desc, `a b` asc":                                           "ORDER BY closed DESC, `a b`",
	} {
		q, err := query.Parse(text, now)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if q.String() != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, q, want)
		} else {
			readsBack(t, q)
		}
	}
}

// readsBack fails if a query is not read from its own text.
func readsBack(t *testing.T, q *query.Query) {
	t.Helper()
	text := q.String()
	if len(text) > query.MaxText {
		return
	}
	again, err := query.Parse(text, now.AddDate(1, 0, 0))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if !reflect.DeepEqual(q, again) {
		t.Fatalf("%s is read as %s:\n%#v\n%#v", text, again, q, again)
	}
}

type dice struct{ *rand.Rand }

func of[T any](d dice, some ...T) T { return some[d.IntN(len(some))] }

var words = []string{
	"a", "ACME", "it's", `"`, "`", `back\slash`, "two words", "new\nline", "ö", "日本", "\u200b", "5", "NOT",
	"attr.x", "now", "x=y", "$", "'", "''", "\x00", "🦊", "closed", "order", "a.b-c_d/e:f@g+h#",
}

func (d dice) field() query.Field {
	if d.IntN(3) == 0 {
		return query.Field{Attribute: of(d, append(words, "type", "typ", "started-after", "TaskQueue", "_", "LIMIT")...)}
	}
	return query.Field{Column: query.ColumnID + query.Column(d.IntN(int(query.ColumnSchedule)))}
}

func (d dice) value(f query.Field, number bool) query.Value {
	switch f.Column {
	case query.ColumnStarted, query.ColumnClosed:
		return query.Value{Kind: query.Instant, Int: of(d, 0, -1<<63, 1<<63-1, d.Int64(), int64(d.Int32()))}
	case query.ColumnTook:
		return query.Value{Kind: query.Span, Int: of(d, 0, d.Int64N(1e15), 1<<63-2)}
	case query.ColumnEvents:
		return d.number()
	case query.ColumnStatus:
		return query.Value{Text: string(of(d, schemas.StatusOpen, schemas.StatusFailed, schemas.StatusTimedOut))}
	case query.ColumnStartMode:
		return query.Value{Text: string(of(d, schemas.StartModes()...))}
	case query.ColumnAttribute:
		if number {
			return d.number()
		}
	}
	return query.Value{Text: of(d, words...)}
}

func (d dice) number() query.Value {
	v, _ := query.ParseNumber(of(d, "0", "-1", "3", "1.5", "-0.25", "1e300", "1e-7", "9223372036854775807", "-9223372036854775808",
		fmt.Sprint(d.NormFloat64()), fmt.Sprint(d.Int64())))
	return v
}

func (d dice) condition() *query.Condition {
	f := d.field()
	c := &query.Condition{Field: f}
	ops := []query.Op{query.In, query.IsNull}
	words := f.Column == query.ColumnStatus || f.Column == query.ColumnStartMode
	text := d.value(f, false).Kind == query.Text && !words
	if !words && f.Column != query.ColumnTag {
		ops = append(ops, query.Less, query.LessEqual, query.Greater, query.GreaterEqual)
	}
	if text {
		ops = append(ops, query.StartsWith, query.Contains)
	}
	c.Op = of(d, ops...)
	c.Not = (c.Op < query.Less || c.Op > query.GreaterEqual) && d.IntN(2) == 0
	number := c.Op < query.StartsWith && d.IntN(2) == 0
	n := 1
	if c.Op == query.In {
		n += d.IntN(3)
	}
	for i := 0; i < n && c.Op != query.IsNull; i++ {
		v, known := d.value(f, number), false
		for _, w := range c.Values {
			known = known || v == w
		}
		if !known {
			c.Values = append(c.Values, v)
		}
	}
	return c
}

// tree returns conditions as a query has them: no And in an And, and no Or in an Or.
func (d dice) tree(depth int, or bool) query.Expr {
	if depth == 0 || d.IntN(4) == 0 {
		return d.condition()
	}
	var terms []query.Expr
	for range 2 + d.IntN(2) {
		terms = append(terms, d.tree(depth-1, !or))
	}
	if or {
		return query.Or(terms)
	}
	return query.And(terms)
}

// A query that is made at random is read from its own text.
func TestRandomQueriesReadBack(t *testing.T) {
	d := dice{rand.New(rand.NewPCG(1, 2))}
	for range 2000 {
		q := &query.Query{Limit: d.IntN(3)}
		if d.IntN(10) > 0 {
			q.Where = d.tree(d.IntN(4), d.IntN(2) == 0)
		}
		if d.IntN(3) == 0 {
			q.Group = []query.Grouping{{Field: query.Field{Attribute: of(d, words...)}}}
			if d.IntN(2) == 0 {
				q.Group = append(q.Group, query.Grouping{Field: query.Field{Column: query.ColumnClosed}, By: of(d, query.Hour, query.Day)})
			}
		} else if d.IntN(2) == 0 {
			if f := d.field(); f.Column != query.ColumnTag {
				q.Order = []query.Order{{Field: f, Descending: d.IntN(2) == 0}}
			}
		}
		readsBack(t, q)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "status=failed type=order", "a = 1", "NOT (a = 'x' OR b IN (1, 2)) AND started > now-24h", "`a b` != \"\\u00e9\"",
		"events BETWEEN 1 AND 2.5e3", "id NOT STARTS_WITH 'x' GROUP BY type, closed BY day LIMIT 3", "ORDER BY took DESC, attr.x",
		"((((", "a = '", "x IS NOT NULL)", "tag=\xff", "ö = 'ö' Ö", "LIMIT", "a = 1e999", "statsu = 1", "a\x00b", "in=3",
	} {
		f.Add(seed)
	}
	d := dice{rand.New(rand.NewPCG(3, 4))}
	for range 50 {
		f.Add((&query.Query{Where: d.tree(3, true)}).String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := query.Parse(text, now)
		if err == nil {
			for _, r := range rows() {
				q.Matches(r)
			}
			readsBack(t, q)
			return
		}
		e, ok := errors.AsType[*query.Error](err)
		if !ok {
			t.Fatalf("%q: got %T", text, err)
		}
		most := utf8.RuneCountInString(text) + 1
		if e.Column < 1 || e.Column > most || e.Found == "" || e.Want == "" || strings.Contains(e.Error(), "\n") {
			t.Errorf("%q: got %#v", text, e)
		}
		if lines := strings.Split(e.Caret(), "\n"); len(lines) != 2 || strings.TrimLeft(strings.TrimSpace(lines[1]), "^") != "" {
			t.Errorf("%q: got\n%s", text, e.Caret())
		}
	})
}
