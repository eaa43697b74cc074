package query_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/ops/query"
	"github.com/droverhq/drover/schemas"
)

func at(text string) schemas.Timestamp {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return schemas.At(t)
}

// rows are a few workflows, by their ids.
func rows() []*query.Row {
	return []*query.Row{
		{
			WorkflowID: "order-1", Run: "r1", Type: "order", Version: "2", Status: schemas.StatusFailed,
			Started: at("2026-11-29T10:00:00Z"), Closed: at("2026-11-29T10:05:00Z"), Events: 40,
			Tags: []string{"eu", "vip"}, Reason: "card declined", StartMode: "Manual",
			Attributes: map[string]string{"customer": "ACME", "priority": "3", "type": "b2b"},
		},
		{
			WorkflowID: "order-2", Run: "r2", Type: "order", Status: schemas.StatusOpen,
			Started: at("2026-11-29T11:00:00Z"), Events: 7, Tags: []string{"us"}, First: "r0",
			StartMode:  "AutoStart (Continuation)",
			Attributes: map[string]string{"customer": "Bolt", "priority": "10", "amount": "9007199254740993"},
		},
		{
			WorkflowID: "order-1/pay", Run: "r3", Type: "payment", Status: schemas.StatusTimedOut,
			Started: at("2026-11-27T00:00:00Z"), Closed: at("2026-11-28T01:00:00Z"), Events: 3,
			Parent: "order-1", StartMode: "Child", Attributes: map[string]string{"priority": "high"},
		},
		{
			WorkflowID: "nightly/2026-11-29", Run: "r4", Type: "report", Status: schemas.StatusPaused,
			Started: at("2026-11-29T02:00:00Z"), Events: 12, Schedule: "nightly", StartMode: "Schedule",
			Attributes: map[string]string{"two words": "x", "priority": "2.5"},
		},
		{
			WorkflowID: "it's", Run: "r5", Type: "report", Status: schemas.StatusCompleted,
			Started: at("2026-11-29T02:00:00Z"), Closed: at("2026-11-29T02:00:01Z"), Events: 12,
			StartMode: "Replay", Attributes: map[string]string{"customer": "acme"},
		},
	}
}

// asked are the runs that match, in the order of the query.
func asked(t *testing.T, text string) string {
	t.Helper()
	q, err := query.Parse(text, now)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return runs(q)
}

func runs(q *query.Query) string {
	all := rows()
	slices.SortFunc(all, q.Compare)
	var runs []string
	for _, r := range all {
		if q.Matches(r) {
			runs = append(runs, r.Run)
		}
	}
	return strings.Join(runs, " ")
}

func TestMeaning(t *testing.T) {
	for text, want := range map[string]string{
		"": "r2 r1 r4 r5 r3",
		// Text.
		"type = 'order'": "r2 r1",
		"type = order":   "r2 r1",
		"TYPE = order":   "r2 r1",
		`id = "it's"`:    "r5", `id = 'it\'s'`: "r5", "id = 'it''s'": "r5", `id = 'it\u0027s'`: "r5",
		"type != order":                    "r4 r5 r3",
		"type IN (order, 'payment')":       "r2 r1 r3",
		"type NOT IN (order, 'payment')":   "r4 r5",
		"id STARTS_WITH 'order-'":          "r2 r1 r3",
		"id NOT STARTS_WITH 'order-'":      "r4 r5",
		"id contains '/'":                  "r4 r3",
		"id BETWEEN 'order-1' AND order-2": "r2 r1 r3",
		"id > 'order-1'":                   "r2 r3",
		"reason CONTAINS 'card'":           "r1",
		"first = r0 OR run = r0":           "r2",
		"version = '2'":                    "r1",
		"schedule = nightly":               "r4",
		"startMode = autostart":            "",
		"startMode = 'autostart (continuation)' OR startMode = Child": "r2 r3",
		// Status.
		"status = failed": "r1", "status = 'FAILED'": "r1",
		"status = closed":                "r1 r5 r3",
		"status != closed":               "r2 r4",
		"status IN (closed, open)":       "r2 r1 r5 r3",
		"NOT status = closed":            "r2 r4",
		"status = Running":               "r2",
		"status NOT IN (closed, paused)": "r2",
		// Times.
		"started > now-2h":                      "r2",
		"started >= now-2h":                     "r2 r1",
		"started < '2026-11-28'":                "r3",
		"started < 2026-11-28":                  "r3",
		"started = 2026-11-29T02:00:00Z":        "r4 r5",
		"started = 2026-11-29T03:00:00+01:00":   "r4 r5",
		"started != '2026-11-29 02:00:00'":      "r2 r1 r3",
		"closed > now-1d12h":                    "r1 r5 r3",
		"closed < now+1h":                       "r1 r5 r3",
		"closed BETWEEN 2026-11-29 AND now":     "r1 r5",
		"closed NOT BETWEEN 2026-11-29 AND now": "r3",
		"started BETWEEN '2026-11-29T02:00:00Z' AND '2026-11-29T10:00:00.000Z'": "r1 r4 r5",
		// Lengths of time, and numbers.
		"took > 5m": "r3", "took >= 5m": "r1 r3", "took = '1s'": "r5", "took < 1h30m": "r1 r5",
		"events > 7": "r1 r4 r5", "events IN (3, 7.0)": "r2 r3", "events < 3.5": "r3",
		// Tags.
		"tag = vip": "r1", "tag != vip": "r2", "tag IS NULL OR tag != vip": "r2 r4 r5 r3",
		"tag IN (vip, us)": "r2 r1", "tag NOT IN (vip)": "r2",
		"tag STARTS_WITH 'v'": "r1", "tag NOT CONTAINS 'u'": "",
		// Attributes.
		"customer = 'ACME'": "r1", "customer = ACME": "r1", "customer != 'ACME'": "r2 r5",
		"attr.type = b2b": "r1", "attr.customer = ACME": "r1", "`two words` = x": "r4",
		"`attr.two words` = x": "r4",
		"priority > 3":         "r2", "priority >= 3": "r2 r1", "priority > '3'": "r3",
		"priority = 3.0": "r1", "priority != 3": "r2 r4", "priority = '3'": "r1",
		"priority BETWEEN 2 AND 3":   "r1 r4",
		"priority IN (2.5, 10)":      "r2 r4",
		"amount = 9007199254740993":  "r2",
		"amount = 9007199254740992":  "",
		"amount > 9007199254740992":  "r2",
		"nothing = 1 OR nothing = a": "", "nothing != 1": "", "nothing IS NULL": "r2 r1 r4 r5 r3",
		// Absence: a condition about what is not there does not hold, nor does its opposite.
		"parent IS NULL": "r2 r1 r4 r5", "parent IS NOT NULL": "r3", "NOT parent IS NULL": "r3",
		"parent != 'x'": "r3", "NOT parent = 'x'": "r3", "NOT (parent = 'order-1')": "",
		"closed IS NULL": "r2 r4", "NOT closed > now-24h": "r3", "took IS NULL": "r2 r4",
		"NOT NOT customer = 'ACME'": "r1", "NOT took < 5m": "r1 r3",
		// What holds conditions together.
		"type = order AND status = failed":                     "r1",
		"type = order OR type = payment AND status = failed":   "r2 r1",
		"(type = order OR type = payment) AND status = failed": "r1",
		"NOT type = order AND status = timedOut":               "r3",
		"NOT (type = order AND status = failed)":               "r2 r4 r5 r3",
		"NOT (type = order OR status = paused)":                "r5 r3",
		"NOT (type = order OR NOT (events > 3 AND tag = eu))":  "",
		"not(type=order)and(events>3)":                         "r4 r5",
		// Words that are names elsewhere.
		"order = 5 OR limit = 5 OR group = x OR type = order": "r2 r1",
		// Order.
		"ORDER BY started":                     "r3 r4 r5 r1 r2",
		"order by closed desc":                 "r1 r5 r3 r2 r4",
		"ORDER BY closed":                      "r3 r5 r1 r2 r4",
		"ORDER BY type, events DESC":           "r1 r2 r3 r4 r5",
		"ORDER BY took DESC":                   "r3 r1 r5 r2 r4",
		"ORDER BY priority":                    "r4 r1 r2 r3 r5",
		"ORDER BY priority DESC":               "r3 r2 r1 r4 r5",
		"ORDER BY attr.customer DESC, id ASC":  "r5 r2 r1 r4 r3",
		"type = report ORDER BY id LIMIT 1":    "r5 r4",
		"tag IN (vip) GROUP BY status LIMIT 3": "r1",
	} {
		if got := asked(t, text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// The words of earlier versions mean all of them.
func TestOldWords(t *testing.T) {
	for text, want := range map[string]string{
		"status=failed type=order":                  "r1",
		"type=order":                                "r2 r1",
		"status=closed":                             "r1 r5 r3",
		"prefix=order- started-after=90m":           "r2",
		"prefix=order- closed-after=2026-11-29":     "r1",
		"started-before=2026-11-28T00:00:00Z tag=x": "",
		"closed-before=now-24h":                     "r3",
		`tag="vip" id=order-1`:                      "r1",
		`id="it's"`:                                 "r5",
		" parent=order-1\n\tstatus=timedOut ":       "r3",
		"customer=ACME priority=3":                  "r1",
		"version=2":                                 "r1",
		"tag=eu tag=vip":                            "r1",
		"status=failed AND version='2'":             "r1",
		"id=nightly/2026-11-29 startMode=Schedule":  "r4",
		"day=2026-11-29 id=(a,b=c)":                 "",
		"in=3 and=x":                                "",
	} {
		if got := asked(t, text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestGroups(t *testing.T) {
	for text, want := range map[string]string{
		"GROUP BY status":              "completed failed open paused timedOut",
		"GROUP BY parent":              " order-1",
		"GROUP BY customer":            " ACME Bolt acme",
		"GROUP BY started BY day":      "2026-11-27 2026-11-29",
		"GROUP BY closed BY HOUR":      " 2026-11-28T01:00:00Z 2026-11-29T02:00:00Z 2026-11-29T10:00:00Z",
		"GROUP BY type, closed BY day": "order|,2026-11-29 payment|2026-11-28 report|,2026-11-29",
	} {
		q, err := query.Parse(text, now)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string][]string{}
		for _, r := range rows() {
			first := q.Group[0].Key(r)
			found[first] = append(found[first], "")
			if len(q.Group) > 1 {
				found[first][len(found[first])-1] = q.Group[1].Key(r)
			}
		}
		var got []string
		for key, more := range found {
			if slices.Sort(more); len(q.Group) > 1 {
				key += "|" + strings.Join(slices.Compact(more), ",")
			}
			got = append(got, key)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	// In rising order.
	texts := []string{
		"-1e300", "-9223372036854775808", "-1.5", "-1", "-0.5", "0", "1e-9",
		"0.1", "1", "1.5", "9007199254740992", "9007199254740993", "9223372036854775807",
		"9223372036854775808", "1e300",
	}
	for i, a := range texts {
		v, ok := query.ParseNumber(a)
		if !ok {
			t.Fatalf("%s is no number", a)
		}
		for j, b := range texts {
			w, _ := query.ParseNumber(b)
			if d := v.Compare(w); (d < 0) != (i < j) || (d > 0) != (i > j) {
				t.Errorf("%s and %s: got %d", a, b, d)
			}
		}
	}
	for _, text := range []string{"", "-", "+1", " 1", "1 ", "0x1p3", "0x10", "1_000", "NaN", "Inf", "infinity", "1e400", ".5", "1e", "١"} {
		if v, ok := query.ParseNumber(text); ok {
			t.Errorf("%q: got %v, want no number", text, v)
		}
	}
	for a, b := range map[string]string{"1": "1.0", "100": "1e2", "0": "-0", "-0.0": "0"} {
		v, _ := query.ParseNumber(a)
		if w, _ := query.ParseNumber(b); v != w {
			t.Errorf("%s and %s: got %v and %v, want the same", a, b, v, w)
		}
	}
}

// Rows have one order, whatever it is by.
func TestCompareIsAnOrder(t *testing.T) {
	d := dice{rand.New(rand.NewPCG(7, 8))}
	var all []*query.Row
	for range 25 {
		r := *of(d, rows()...)
		r.Run = of(d, "a", "b", "c")
		r.Attributes = map[string]string{"x": of(d, "", "1", "1.0", "01", "2", "10", "-1", "a", "B", "1e400")}
		all = append(all, &r)
	}
	for _, text := range []string{"", "ORDER BY x", "ORDER BY x DESC", "ORDER BY closed", "ORDER BY type, took DESC"} {
		q, err := query.Parse(text, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			for _, b := range all {
				if d, e := q.Compare(a, b), q.Compare(b, a); d != -e || d == 0 && (a.Run != b.Run || a.WorkflowID != b.WorkflowID) {
					t.Fatalf("%s: got %d and %d for %v and %v", text, d, e, a, b)
				}
				for _, c := range all {
					if q.Compare(a, b) <= 0 && q.Compare(b, c) <= 0 && q.Compare(a, c) > 0 {
						t.Fatalf("%s: %v, %v and %v have no order", text, a, b, c)
					}
				}
			}
		}
	}
}
