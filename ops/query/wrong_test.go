package query_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/droverhq/drover/ops/query"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func refused(t *testing.T, text string) *query.Error {
	t.Helper()
	q, err := query.Parse(text, now)
	e, ok := errors.AsType[*query.Error](err)
	if !ok {
		t.Fatalf("%q: got %v and error %v, want a *query.Error", text, q, err)
	}
	return e
}

// Every wrong form is refused where it is wrong. A mark ‸ in the text stands before the place.
func TestWrongForms(t *testing.T) {
	for _, tc := range []struct{ text, field, found, want, nearest string }{
		// Fields.
		{"‸statsu = failed", "", `"statsu"`, "attribute of this name is attr.statsu", "status"},
		{"status = failed AND ‸typ = 'x'", "", `"typ"`, "a field", "type"},
		{"‸StartTimee > now", "", `"StartTimee"`, "a field", "StartTime"},
		{"‸workflow_id = 'x'", "", `"workflow_id"`, "a field", "workflowId"},
		{"type = 'ö' AND ‸clsoed > now", "", `"clsoed"`, "a field", "closed"},
		{"‸`tagz` = 'x'", "", `"tagz"`, "attr.tagz", "tag"},
		{"‸TaskQueue = 'x'", "", `"TaskQueue"`, "Drover has no such one (an attribute of this name is attr.TaskQueue)", ""},
		{"‸TemporalSchedulePaused = true", "", `"TemporalSchedulePaused"`, "no such one", ""},
		{"‸started-after > now", "", `"started-after"`, "started > now-2h", ""},
		{"‸prefix STARTS_WITH 'x'", "", `"prefix"`, "id STARTS_WITH 'x'", ""},
		{"‸attr. = 1", "", `"attr."`, "name of an attribute", ""},
		{"‸'status' = failed", "", `"status"`, "name of a field", ""},
		{"‸= failed", "", `"="`, "name of a field", ""},
		{"‸5 = 5", "", `"5"`, "name of a field", ""},
		{"status = failed AND‸", "", "the end of the query", "name of a field", ""},
		{"NOT‸", "", "the end of the query", "name of a field", ""},
		{"status = failed AND ‸AND type = 'x'", "", `"AND"`, "name of a field", ""},
		{"‸lower(type) = 'x'", "", `"lower"`, "there are no functions", ""},
		{"‸COUNT(*) > 3", "", `"COUNT"`, "there are no functions", ""},
		// Operators.
		{"status‸", "status", "the end of the query", "an operator", ""},
		{"status ‸== failed", "status", `"=="`, "an operator", "="},
		{"status ‸<> failed", "status", `"<>"`, "an operator", "!="},
		{"id ‸LIKE 'x%'", "id", `"LIKE"`, "an operator", "STARTS_WITH or CONTAINS"},
		{"id ‸STARTSWITH 'x'", "id", `"STARTSWITH"`, "an operator", "STARTS_WITH"},
		{"id ‸'x'", "id", `"x"`, "an operator", ""},
		{"events ‸BETWEN 1 AND 2", "events", `"BETWEN"`, "an operator", "BETWEEN"},
		{"status ‸< failed", "status", `"<"`, "= != IN or IS", ""},
		{"ExecutionStatus ‸STARTS_WITH 'F'", "ExecutionStatus", `"STARTS_WITH"`, "= != IN or IS", ""},
		{"startMode NOT ‸CONTAINS 'x'", "startMode", `"CONTAINS"`, "= != IN or IS", ""},
		{"tag ‸>= 'x'", "tag", `">="`, "STARTS_WITH CONTAINS", ""},
		{"started ‸CONTAINS '2026'", "started", `"CONTAINS"`, "BETWEEN", ""},
		{"customer NOT ‸= 'x'", "customer", `"="`, "IN, BETWEEN, STARTS_WITH or CONTAINS", ""},
		{"customer NOT ‸CONTAIN 'x'", "customer", `"CONTAIN"`, "IN, BETWEEN", "CONTAINS"},
		{"customer NOT ‸IS NULL", "customer", `"IS"`, "or IS NOT NULL", ""},
		{"customer IS ‸EMPTY", "customer", `"EMPTY"`, "NULL or NOT NULL", ""},
		{"customer IS NOT ‸NUL", "customer", `"NUL"`, "NULL", "NULL"},
		// Values.
		{"status = ‸faild", "status", `"faild"`, "open, paused, completed, failed", "failed"},
		{"status IN ('failed', ‸'timeout')", "status", `"timeout"`, "or closed", "timedOut"},
		{"ExecutionStatus = ‸'Runing'", "ExecutionStatus", `"Runing"`, "or closed", "Running"},
		{"startMode = ‸'Manuel'", "startMode", `"Manuel"`, "AutoStart (Continuation)", "Manual"},
		{"started > ‸yesterday", "started", `"yesterday"`, "now-24h", ""},
		{"started > ‸'2026-13-01'", "started", `"2026-13-01"`, "2026-01-31", ""},
		{"started > ‸now-1month", "started", `"now-1month"`, "now-24h", ""},
		{"started > ‸now-", "started", `"now-"`, "now-24h", ""},
		{"started > ‸nowadays", "started", `"nowadays"`, "now-24h", ""},
		{"StartTime > ‸1700000000000000000", "StartTime", `"1700000000000000000"`, "now-24h", ""},
		{"took > ‸60", "took", `"60"`, "90s, 5m", ""},
		{"took > ‸'00:01:00'", "took", `"00:01:00"`, "90s, 5m", ""},
		{"events > ‸'5'", "events", `"5"`, "a number without quotes", ""},
		{"events > ‸many", "events", `"many"`, "a number", ""},
		{"type = ‸5", "type", `"5"`, "write '5'", ""},
		{"customer = ‸2026-11-01", "customer", `"2026-11-01"`, "quotes: '2026-11-01'", ""},
		{"start > ‸now-24h", "start", `"now-24h"`, "quotes: 'now-24h'", ""},
		{"customer CONTAINS ‸5", "customer", `"5"`, "write '5'", ""},
		{"customer IN (1, ‸'a')", "customer", `"a"`, "numbers alone, or texts alone", ""},
		{"customer BETWEEN 'a' AND ‸5", "customer", `"5"`, "numbers alone, or texts alone", ""},
		{"customer = ‸''", "customer", `""`, "IS NULL", ""},
		{"customer =‸", "customer", "the end of the query", "a value", ""},
		{"customer = ‸AND type = 'x'", "customer", `"AND"`, "a value", ""},
		{"customer = ‸NULL", "customer", `"NULL"`, "a value", ""},
		{"customer = ‸ORDER BY started", "customer", `"ORDER"`, "a value", ""},
		{"customer = ‸LIMIT 5", "customer", `"LIMIT"`, "a value", ""},
		{"customer = ‸`x`", "customer", `"x"`, "a value", ""},
		{"started > ‸now()", "started", `"now"`, "no functions", ""},
		{"customer IN ‸'a'", "customer", `"a"`, "a bracket (", ""},
		{"customer IN (‸)", "customer", `")"`, "a value", ""},
		{"customer IN ('a' ‸'b')", "customer", `"b"`, "a comma or a bracket )", ""},
		{"customer IN ('a', 'b'‸", "customer", "the end of the query", "a comma or a bracket )", ""},
		{"events BETWEEN 1 ‸OR 2", "events", `"OR"`, "AND and the upper value", ""},
		{"events BETWEEN 1 ‸ADN 2", "events", `"ADN"`, "AND and the upper value", "AND"},
		{"events BETWEEN ‸many AND 3", "events", `"many"`, "a number", ""},
		{"events BETWEEN 1 AND ‸many", "events", `"many"`, "a number", ""},
		// What holds conditions together.
		{"(status = failed‸", "", "the end of the query", "a bracket )", ""},
		{"((status = failed) OR type = 'x'‸", "", "the end of the query", "a bracket )", ""},
		{"status = failed‸)", "", `")"`, "AND, OR, GROUP BY", ""},
		{"(‸)", "", `")"`, "name of a field", ""},
		{"status = failed ‸type = 'x'", "", `"type"`, "AND, OR", ""},
		{"status = failed ‸ADN type = 'x'", "", `"ADN"`, "AND, OR", "AND"},
		{"status = failed ‸, type = 'x'", "", `","`, "AND, OR", ""},
		{"status = failed ‸&& type = 'x'", "", `"&"`, "stands in quotes", ""},
		{"customer = a‸;", "", `";"`, "stands in quotes", ""},
		// Texts.
		{"customer = ‸'x", "", `"'"`, "another ' at the end", ""},
		{`customer = 'a‸\x'`, "", `"\\x"`, "an escape", ""},
		{`customer = 'a‸\ud800'`, "", `"\\u"`, "an escape", ""},
		{`customer = 'a‸\u00'`, "", `"\\u"`, "an escape", ""},
		{`customer = 'a‸\`, "", `"\\"`, "an escape", ""},
		{"customer = 'a‸\xff'", "", `"�"`, "UTF-8", ""},
		// Clauses.
		{"GROUP BY‸", "", "the end of the query", "name of a field", ""},
		{"GROUP BY ‸id", "", `"id"`, "status, type, parent", ""},
		{"GROUP BY ‸stauts", "", `"stauts"`, "a field", "status"},
		{"GROUP BY status, type, ‸reason", "", `"reason"`, "at most two", ""},
		{"GROUP BY status, ‸status", "", `"status"`, "each field once", ""},
		{"GROUP BY started‸", "started", "the end of the query", "BY hour or BY day", ""},
		{"GROUP BY started BY ‸week", "started", `"week"`, "hour or day", ""},
		{"GROUP BY started BY ‸hours", "started", `"hours"`, "hour or day", "hour"},
		{"GROUP BY status ‸BY hour", "", `"BY"`, "a comma, LIMIT", ""},
		{"GROUP BY status ORDER ‸BY started", "", `"BY"`, "the largest comes first", ""},
		{"ORDER BY ‸tag", "", `"tag"`, "several tags", ""},
		{"ORDER BY started, ‸startedAt", "", `"startedAt"`, "each field once", ""},
		{"ORDER BY started ‸DSC", "", `"DSC"`, "ASC, DESC", "DESC"},
		{"ORDER BY ‸5", "", `"5"`, "name of a field", ""},
		{"ORDER ‸started", "", `"started"`, "BY after ORDER", ""},
		{"status = failed GROUP ‸type", "", `"type"`, "BY after GROUP", ""},
		{"LIMIT ‸0", "", `"0"`, "a number from 1 on", ""},
		{"LIMIT ‸-1", "", `"-1"`, "a number from 1 on", ""},
		{"LIMIT ‸1.5", "", `"1.5"`, "a number from 1 on", ""},
		{"LIMIT ‸99999999999", "", `"99999999999"`, "a number from 1 on", ""},
		{"LIMIT‸", "", "the end of the query", "a number from 1 on", ""},
		{"LIMIT 5 ‸ORDER BY started", "", `"ORDER"`, "the end of the query", ""},
		{"status = failed ‸LIMITS 5", "", `"LIMITS"`, "AND, OR", "LIMIT"},
		// The old words.
		{"‸statsu=failed type=order", "", `"statsu"`, "a field", "status"},
		{"status=‸faild type=order", "status", `"faild"`, "open, paused", "failed"},
		{"status=failed ‸startd-after=2h", "", `"startd-after"`, "a field", "started-after"},
		{"id='x' ‸type='y'z", "", `"type"`, "AND, OR", ""},
		{"customer=‸NULL", "customer", `"NULL"`, "IS NULL", ""},
		{"start=‸now-2h", "start", `"now-2h"`, "quotes: 'now-2h'", ""},
		{"started-after=‸soon", "started-after", `"soon"`, "now-24h", ""},
	} {
		before, after, ok := strings.Cut(tc.text, "‸")
		if !ok {
			t.Fatalf("%q has no mark", tc.text)
		}
		e := refused(t, before+after)
		column := len([]rune(before)) + 1
		if e.Column != column || e.Field != tc.field || e.Found != tc.found ||
			!strings.Contains(e.Want, tc.want) || e.Nearest != tc.nearest {
			t.Errorf("%s\ngot  column %d, field %q, found %s, nearest %q, want %s\n"+
				"want column %d, field %q, found %s, nearest %q, want %s",
				tc.text, e.Column, e.Field, e.Found, e.Nearest, e.Want,
				column, tc.field, tc.found, tc.nearest, tc.want)
		}
	}
}

func TestWrongTooMuch(t *testing.T) {
	deep := strings.Repeat("(", 101) + "status = failed" + strings.Repeat(")", 101)
	if e := refused(t, deep); e.Column != 101 || !strings.Contains(e.Want, "100 brackets") {
		t.Errorf("got %v", e)
	}
	if _, err := query.Parse(deep[1:len(deep)-1], now); err != nil {
		t.Errorf("100 brackets: %v", err)
	}
	refused(t, strings.Repeat("NOT ", 200)+"status = failed")
	long := "customer = '" + strings.Repeat("x", query.MaxText) + "'"
	if e := refused(t, long); !strings.Contains(e.Want, "64 KiB") || len(e.Error()) > 200 {
		t.Errorf("got %v", e)
	}
}

func TestErrorText(t *testing.T) {
	e := refused(t, "type = 'ö' AND status = faild LIMIT 3")
	want := `column 25: status: found "faild", want open, paused, completed, failed, canceled, ` +
		`terminated, timedOut, continuedAsNew, Running or closed; did you mean failed?`
	if e.Error() != want {
		t.Errorf("got  %s\nwant %s", e, want)
	}
	want = "type = 'ö' AND status = faild LIMIT 3\n                        ^^^^^"
	if e.Caret() != want {
		t.Errorf("got\n%s\nwant\n%s", e.Caret(), want)
	}
}

// Of a long query the lines show the part around the place.
func TestCaretOfLongQuery(t *testing.T) {
	for _, text := range []string{
		"status =\n\tfaild", "status =", "",
		strings.Repeat("type = 'ö' OR ", 50) + "statsu = x" + strings.Repeat(" OR tag = 'x'", 50),
		strings.Repeat("type = 'ö' OR ", 50) + "status = 'x" + strings.Repeat("y", 200) + "'",
		strings.Repeat("type = 'ö' OR ", 50),
		"status = 'x" + strings.Repeat("y", 200) + "'",
	} {
		_, err := query.Parse(text, now)
		e, ok := errors.AsType[*query.Error](err)
		if !ok {
			continue
		}
		line, marks, _ := strings.Cut(e.Caret(), "\n")
		at := strings.IndexByte(marks, '^')
		if strings.ContainsAny(marks, "\n\t") || utf8.RuneCountInString(marks) > 77 ||
			utf8.RuneCountInString(line) > 76 || at < 0 {
			t.Errorf("%q: got\n%s", text, e.Caret())
			continue
		}
		shown, all := append([]rune(line), ' '), append([]rune(e.Text), ' ')
		if a, b := shown[at], all[e.Column-1]; a != b && b != '\n' {
			t.Errorf("%q: the mark is below %q, want %q", text, a, b)
		}
	}
}
