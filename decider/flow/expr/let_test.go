package expr_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/droverhq/drover/decider/flow/syntax"
)

func TestLet(t *testing.T) {
	for text, want := range map[string]any{
		// words, quotes, types
		"hello":               "hello",
		"hello   world":       "hello   world",
		"  hello world ":      "hello world",
		`"hello   world"`:     "hello   world",
		`'a' b "c d"`:         "a b c d",
		`say "a", "b"`:        `say "a", "b"`, // F1: a quote that belongs to the text
		`"a", "${i}"`:         `"a", "7"`,
		`"a + b", c`:          `"a + b", c`,
		`'it's' 'so'`:         "it's so",
		`1 + "a"b`:            problem("is no number"),
		`"${person}" is ${s}`: "${person} is text", // quoted words are not interpolated
		"${i}":                int64(7),
		"${l}":                list{int64(1), "two", dict{"deep": "found"}},
		"a${i}b":              "a7b",
		"${i} ${f}":           "7 1.5",
		"x ${l}":              problem("a list is no text"),
		`""`:                  "",
		"5":                   int64(5),
		"-5":                  int64(-5),
		"1.5":                 1.5,
		"2.0":                 2.0,
		"true":                true,
		"false":               false,
		"null":                nil,
		`"5"`:                 "5",
		`'true'`:              "true",
		"007":                 "007", // nothing that was written is lost
		"1.10":                "1.10",
		"1e3":                 "1e3",
		"+5":                  "+5",
		"9223372036854775808": "9223372036854775808",
		"5 apples":            "5 apples",
		"{ a: 1 }":            "{ a: 1 }",
		"don't ask":           "don't ask",
		"a-b":                 "a-b",
		"${i}+1":              "7+1", // operators are words of their own
		"http://x/y?z=${i}&a": "http://x/y?z=7&a",
		"f(x) and (y)":        "f(x) and (y)",
		"hello (world)":       "hello (world)",
		"!important":          "!important",
		"x = 1":               "x = 1",
		`"a + b"`:             "a + b",
		"${m.a['b c']}":       "x",
		"x${m.a['b c']}":      "xx",

		// integers and doubles
		"1 + 2":             int64(3),
		"${i} * 3 + 1":      int64(22),
		"1 + 2 * 3":         int64(7),
		"2 * 3 + 1":         int64(7),
		"10 - 3 - 2":        int64(5),
		"100 / 10 / 5":      int64(2),
		"7 - 2 + 1":         int64(6),
		"2 * 7 % 4":         int64(2),
		"( 1 + 2 ) * 3":     int64(9),
		"(1 + 2) * 3":       int64(9),
		"2 * (3 + (4 - 1))": int64(12),
		"4 / 2":             int64(2),
		"4 / 5":             0.8,
		"4.0 / 2":           2.0,
		"1 + 1.0":           2.0,
		"1.5 + 1":           2.5,
		"3 * 0.5":           1.5,
		"1.5 - 0.5":         1.0,
		"7 % 3":             int64(1),
		"-7 % 3":            int64(-1),
		"7.0 % 3":           problem("% is for integers only"),
		"1 / 0":             problem("division by zero"),
		"1.0 / 0":           problem("division by zero"),
		"1 % 0":             problem("division by zero"),
		"${big} + 1":        problem("64 bits"), // upstream: 32 bits that wrap
		"${small} - 1":      problem("64 bits"),
		"${big} * 2":        problem("64 bits"),
		"${small} * -1":     problem("64 bits"),
		"${small} / -1":     problem("64 bits"),
		"${small} % -1":     int64(0),
		"${small} * 1":      int64(math.MinInt64),
		"2147483647 + 1":    int64(2147483648),
		"1e308 * 10":        problem("does not fit a double"),
		"${five} + 1":       int64(6),
		`"5" * "2"`:         int64(10),
		"${five} + 0.5":     5.5,
		"-${i} + 1":         int64(-6),                              // a text that is a number
		"a + b":             problem(`the string "a" is no number`), // upstream: silently a text
		"1 + b":             problem(`the string "b" is no number`),
		"${b} + 1":          problem("the boolean"),
		"${l} + 1":          problem("a list is no number"),
		"${s} ${i} + 1":     problem(`the string "text 7"`),

		// durations and instants
		"${d} + 30s":                  2 * time.Minute,
		"${d} - 2m":                   -30 * time.Second,
		"1m + 30s":                    90 * time.Second,
		`"1m 30s" + 1s`:               91 * time.Second,
		"1m 30s + 1s":                 91 * time.Second,
		"${d} * 2":                    3 * time.Minute,
		"2 * ${d}":                    3 * time.Minute,
		"0.5 * ${d}":                  45 * time.Second,
		"${d} / 2":                    45 * time.Second,
		"${d} / 0.5":                  3 * time.Minute,
		"1ns / 3":                     time.Duration(0),
		"${d} / 0":                    problem("division by zero"),
		"${d} / 0.0":                  problem("division by zero"),
		"${d} + 1":                    problem("cannot be computed"),
		"1 + ${d}":                    problem("cannot be computed"),
		"${d} * ${d}":                 problem("cannot be computed"),
		"${d} % 2":                    problem("cannot be computed"),
		"106751d + 106751d":           problem("the duration does not fit"),
		"106751d * 2":                 problem("the duration does not fit"),
		"106751d * 1.1":               problem("the duration does not fit"),
		"${t} + 1h":                   noon.Add(time.Hour),
		"${t} - ${d}":                 noon.Add(-90 * time.Second),
		"1h + ${t}":                   noon.Add(time.Hour),
		"1h - ${t}":                   problem("cannot be computed"),
		"${t} - 2026-03-29T11:00:00Z": time.Hour,
		"2026-03-29T11:00:00Z - ${t}": -time.Hour,
		"${t} + ${t}":                 problem("cannot be computed"),
		"${t} * 2":                    problem("cannot be computed"),
		"2 * ${t}":                    problem("cannot be computed"),
		"9999-12-31T23:00:00Z + 1d":   problem("the instant does not fit"),
		"9999-12-31T23:00:00Z - 0001-01-01T00:00:00Z": problem("the duration does not fit"),

		// comparisons
		"1 + 2 > 2":                   true, // upstream: a text
		"2 < 1 + 2":                   true,
		"1 < 2":                       true,
		"2 <= 2":                      true,
		"2 >= 3":                      false,
		"2 > 1.5":                     true,
		"9 < 10":                      true,
		`"9" < "10"`:                  true,
		"v1.9 < v1.10":                true,
		"${d} < 2m":                   true,
		"${t} > 2026-01-01T00:00:00Z": true,
		"1 == 1.0":                    true,
		`5 == "5.0"`:                  true,
		`"5" == "5.0"`:                false,
		"a == a":                      true,
		"a b == a b":                  true,
		"${l} == ${l}":                true,
		"1 != 2":                      true, // upstream: no such operator
		"a != a":                      false,
		"null == null":                true,
		"${b} == true":                true,
		"a < 5":                       problem("have no order"),
		"${l} < 5":                    problem("have no order"),
		"null < 5":                    problem("have no order"),
		"true < false":                problem("have no order"),

		// booleans
		"true && false":           false,
		"true || false":           true,
		"1 == 1 && 2 == 2":        true, // upstream: a text
		"1 == 2 || 2 == 2":        true,
		"true || true && false":   true, // upstream: && binds looser
		"(true || true) && false": false,
		"false && true || true":   true,
		"false && ${absent}":      false,
		"true || ${absent}":       true,
		"true && ${absent}":       problem("no such value"),
		"!true":                   false,
		"!!important":             "!!important",
		"!!true":                  true,
		"! ${no}":                 true,
		"!${no} && true":          true,
		"!(1 == 2)":               true,
		"!${no} == true":          true,
		"${five} && true":         problem("needs booleans"),
		"1 && true":               problem("needs booleans"),
		"true && 1":               problem("needs booleans"),
		"!5":                      "!5",
		"! 5":                     problem("needs booleans"),
		`"yes" && "true"`:         true,

		// ?:
		"true ? a : b":                           "a",
		"1 > 2 ? a : b c":                        "b c",
		"${b} ? ${i} : ${absent}":                int64(7), // the arm that is not taken is not evaluated
		"${no} ? ${absent} : ${i}":               int64(7),
		"false ? 1 : false ? 2 : 3":              int64(3),
		"true ? false ? 1 : 2 : 3":               int64(2),
		"${i} > 5 && ${b} ? ${i} + 1 : ${i} - 1": int64(8),
		"${i} ? a : b":                           problem("needs booleans"),
		"${s} ? a : b":                           problem("needs booleans"),
		"1 / 0 == 1 ? a : b":                     problem("division by zero"),
		"(true ? 1 : 2) + 1":                     int64(2),

		// ??
		"${absent} ?? unset":           "unset",
		`${absent} ?? ""`:              "",
		"${entity.sensor.count} ?? 0":  int64(0), // the increment example
		"${nothing} ?? 0":              int64(0),
		"${m.n} ?? 0":                  int64(0),
		"${later} ?? 0":                int64(0),
		"${i} ?? 0":                    int64(7),
		"${no} ?? 0":                   false,
		"${empty} ?? 0":                "",
		"${absent} ?? ${nothing} ?? 3": int64(3),
		"${absent} ?? ${nothing}":      problem("the value is null"),
		"${s.part} ?? 1":               int64(1),
		"1 / 0 ?? 5":                   int64(5),
		"a + 1 ?? 5":                   int64(5),
		"${absent} ?? 1 + 2":           int64(3),
		"(${absent} ?? 1) + 2":         int64(3),
		"x ${absent} ?? y":             "y",
		"null ?? 1":                    int64(1),
		"${absent} ?? 5 > 3 ? a : b":   "a",
		"${absent} ?? true || false":   true,
	} {
		x, err := expr.ParseLet(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := x.Eval(env())
		check(t, text, got, err, want)
	}
}

func TestLetRefuses(t *testing.T) {
	for _, tc := range []struct {
		text   string
		offset int
		want   string
	}{
		{"", 0, `write "" for the empty text`},
		{"  ", 2, "the value is missing"},
		{"1 +", 3, "a value is missing before the end"},
		{"+ 1", 0, "the operator + has no value before it"},
		{"1 + + 2", 4, "a value is missing before the operator +"},
		{"1 * / 2", 4, "a value is missing before the operator /"},
		{"a ? b", 5, "the : of a ? is missing"},
		{"a ? b : ", 8, "a value is missing"},
		{"a : b", 2, "the operator : does not belong here"},
		{"Is it ok ?", 10, "a value is missing before the end"},
		{"(1 + 2", 6, "not closed"},
		{"(1 + ) * 2", 5, "a value is missing before the parenthesis"},
		{"()", 1, "a value is missing before the parenthesis"},
		{"(1 + 2) 3", 8, "no operator after the parenthesis"},
		{"(1 + 2)x", 7, "no operator after the parenthesis"},
		{"1 < 2 < 3", 6, "follows another comparison"},
		{"1 == 2 == 3", 7, "follows another comparison"},
		{"1 < 2 >= 3", 6, "follows another comparison"},
		{"!", 1, "a value is missing before the end"},
		{"1 + !", 5, "a value is missing before the end"},
		{`a "b`, 2, "the quote is not closed"},
		{"1 + ${a", 4, "not closed"},
		{"1 + ${a b}", 7, "operators work in let"},
		{"x ${a+b}", 5, "names have letters"},
		{strings.Repeat("(", 200), 50, "too long"},
		{strings.Repeat("! ", 200) + "true", 200, "too long"},
		{"1" + strings.Repeat(" + 1", 2000), 0, "too long"},
		{"a" + strings.Repeat(" ? a : a", 200), 0, "too long"},
		{strings.Repeat("a", 1<<16+1), 0, "too long"},
	} {
		got, err := expr.ParseLet(tc.text)
		e, ok := errors.AsType[*syntax.Error](err)
		if !ok || tc.offset != 0 && e.Offset != tc.offset || !strings.Contains(err.Error(), tc.want) || e.Hint == "" {
			t.Errorf("%.40q: got %v, %v, want offset %d, %q and a hint", tc.text, got, err, tc.offset, tc.want)
		}
	}
}

// Errors of evaluation point at the operator, or the ${…}, within the whole text.
func TestLetErrorsPoint(t *testing.T) {
	for text, offset := range map[string]int{
		"1 + a":                2,
		"(1 + 2) * b":          8,
		"1 + ${absent}":        4,
		"ab cd ${absent} ef":   6,
		"ab cd${absent}":       5,
		"true && 5":            5,
		"! 5":                  0,
		"5 ? a : b":            2,
		"${i} + 1 > ${absent}": 11,
		"'ab' + 1":             5,
	} {
		x, err := expr.ParseLet(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = x.Eval(env())
		e, ok := errors.AsType[*expr.Error](err)
		if !ok || e.Offset != offset || e.Text != text {
			t.Errorf("%s: got %v, want offset %d", text, err, offset)
		}
	}
}
