package query_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/droverhq/drover/ops/query"
)

// truth is a value of three-valued logic: 0 is false, 1 unknown, 2 true. OR is the larger of two,
// AND the smaller, NOT is 2 less the value.
type truth int

func truthOf(known, holds bool) truth {
	switch {
	case !known:
		return 1
	case holds:
		return 2
	}
	return 0
}

// sentence returns a condition with what it means for a row, by the rules of SQL.
func (d dice) sentence(depth int) (string, func(*query.Row) truth) {
	if depth == 0 {
		return d.simple()
	}
	a, left := d.sentence(depth - 1)
	b, right := d.sentence(d.IntN(depth))
	switch d.IntN(3) {
	case 0:
		return fmt.Sprintf("(%s) AND (%s)", a, b), func(r *query.Row) truth { return min(left(r), right(r)) }
	case 1:
		return fmt.Sprintf("(%s or (%s))", a, b), func(r *query.Row) truth { return max(left(r), right(r)) }
	default:
		return fmt.Sprintf("NOT (%s)", a), func(r *query.Row) truth { return 2 - left(r) }
	}
}

func (d dice) simple() (string, func(*query.Row) truth) {
	not := of(d, "", "NOT ")
	turned := func(v truth) truth {
		if not != "" {
			return 2 - v
		}
		return v
	}
	customer := func(r *query.Row) string { return r.Attributes["customer"] }
	switch d.IntN(6) {
	case 0:
		w := of(d, "ACME", "acme", "Bolt")
		return fmt.Sprintf("%scustomer = %s", not, w), func(r *query.Row) truth {
			return turned(truthOf(customer(r) != "", customer(r) == w))
		}
	case 1:
		return "customer " + not + "IN ('ACME', 'Bolt')", func(r *query.Row) truth {
			return turned(truthOf(customer(r) != "", customer(r) == "ACME" || customer(r) == "Bolt"))
		}
	case 2:
		return "customer IS " + not + "NULL", func(r *query.Row) truth {
			return turned(truthOf(true, customer(r) == ""))
		}
	case 3:
		n := int64(d.IntN(50))
		return fmt.Sprintf("events %sBETWEEN %d AND %d", not, n, n+10), func(r *query.Row) truth {
			return turned(truthOf(true, n <= r.Events && r.Events <= n+10))
		}
	case 4:
		at := at("2026-11-29T00:00:00Z")
		return not + "closed >= '2026-11-29'", func(r *query.Row) truth {
			return turned(truthOf(r.Closed != 0, r.Closed >= at))
		}
	default:
		return "parent " + not + "CONTAINS '-'", func(r *query.Row) truth {
			return turned(truthOf(r.Parent != "", strings.Contains(r.Parent, "-")))
		}
	}
}

// NOT is worked into the conditions when a query is read: each row matches that matches by SQL.
func TestThreeValuedLogic(t *testing.T) {
	d := dice{rand.New(rand.NewPCG(5, 6))}
	for range 2000 {
		text, want := d.sentence(d.IntN(5))
		q, err := query.Parse(text, now)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for _, r := range rows() {
			if q.Matches(r) != (want(r) == 2) {
				t.Fatalf("%s: run %s: got %v\nread as %s", text, r.Run, q.Matches(r), q)
			}
		}
	}
}
