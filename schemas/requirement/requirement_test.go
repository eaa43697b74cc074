package requirement_test

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/requirement"
)

func TestRequireHolds(t *testing.T) {
	const absent = "absent"
	for _, tt := range []struct {
		require string
		holds   string // values that pass, separated by spaces
		fails   string
	}{
		{"", `absent null 1 "x" {}`, ""},
		{"null", "absent 1", ""},
		{"42", `42 42.0 4.2e1 "42"`, `absent 41 null "42x" [42]`},
		{`"x"`, `"x" x`, `absent "X" 1 null`},
		{`{"equals":true}`, `true "true"`, `absent false 1 "TRUE"`},
		{`{"equals":{"a":[1,2]}}`, `{"a":[1.0,2]}`, `absent {} {"a":[1]} {"a":[1,2],"b":1} [1,2]`},
		{`{"equals":12345678901234567890123}`, `12345678901234567890123 "12345678901234567890123"`, `12345678901234567890124`},
		{`{"when":"absent"}`, "absent", `null 1 ""`},
		{`{"when":"absent_or_null"}`, "absent null", `1 "" false`},
		{`{"when":"present"}`, `null 1`, "absent"},
		{`{"when":"present_non_null"}`, `1 "" false`, "absent null"},
		{`{"when":"truthy"}`, `1 "x" true [0] {"a":0}`, `absent null 0 0.0 "" false [] {}`},
		{`{"when":"falsy"}`, `absent null 0 "" false [] {}`, `1 "x" true`},
		{`{"when":"always"}`, "absent 1", ""},
		{`{"when":"never"}`, "", "absent 1"},
		{`{"less-than":5}`, `4 -1 "4.5"`, `absent 5 6 "x" null true [1]`},
		{`{"less-than-or-equal-to":5}`, `4 5`, `absent 5.1`},
		{`{"greater-than":5}`, `6 "6"`, `absent 5`},
		{`{"greater-than-or-equal-to":"5"}`, `5 6`, `absent 4`},
		{`{"greater-than":1,"less-than":3}`, "2", "absent 1 3"},
		{`{"any":[{"when":"absent"},{"equals":"w1"}]}`, `absent "w1"`, `"w2" null`},
		{`{"all":[{"greater-than":1},{"not":3}]}`, "2 4", "absent 3 1"},
		{`{"not":{"equals":1}}`, "absent 2", "1"},
		{`{"check":{"when":"present"}}`, "1", "absent"},
	} {
		r, err := requirement.Parse(schemas.Payload(tt.require))
		if err != nil {
			t.Errorf("%s: %v", tt.require, err)
			continue
		}
		judge := func(values string, want bool) {
			for v := range strings.FieldsSeq(values) {
				p := schemas.Payload(v)
				if v == absent {
					p = nil
				}
				if got := r.Holds(p, v != absent); got != want {
					t.Errorf("%s on %s: got %v, want %v", tt.require, v, got, want)
				}
			}
		}
		judge(tt.holds, true)
		judge(tt.fails, false)
	}
}

func TestRequireOfBytes(t *testing.T) {
	r, err := requirement.Parse(schemas.Payload(`{"when":"truthy"}`))
	if err != nil || !r.Holds(schemas.Payload("\xff\xfe"), true) {
		t.Fatalf("bytes count as nothing: %v", err)
	}
}

func TestParseRequireRefuses(t *testing.T) {
	for require, want := range map[string]string{
		"{":                    "no JSON",
		"1 2":                  "no JSON",
		"true":                 `{"equals": true}`,
		"[1]":                  "any or all",
		"{}":                   "nothing to check",
		`{"wen":"absent"}`:     "wen: no such check",
		`{"when":"gone"}`:      "when: want absent",
		`{"when":1}`:           "when: want absent",
		`{"equals":null}`:      "absent_or_null",
		`{"less-than":"x"}`:    "less-than: want a number",
		`{"any":{}}`:           "any: want a list",
		`{"any":[]}`:           "any: want a list",
		`{"any":[1,{"a":1}]}`:  "any: [1]: a: no such check",
		`{"not":null}`:         "not: null",
		`{"check":{"all":[]}}`: "check: all: want a list",
		strings.Repeat(`{"not":`, 40) + "1" + strings.Repeat("}", 40): "more than 32",
	} {
		if _, err := requirement.Parse(schemas.Payload(require)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", require, err, want)
		}
	}
}

func FuzzRequire(f *testing.F) {
	f.Add([]byte(`{"any":[{"when":"absent"},{"equals":{"a":[1,"x",null,true]}}]}`), []byte(`{"a":[1.0,"x",null,"true"]}`))
	f.Add([]byte(`{"not":{"less-than":1e300,"greater-than-or-equal-to":"-5e-300"}}`), []byte("1e999999999"))
	f.Add([]byte(`"x"`), []byte("\xff"))
	f.Fuzz(func(t *testing.T, require, value []byte) {
		r, err := requirement.Parse(require)
		if err != nil {
			return
		}
		r.Holds(nil, false)
		not, err := requirement.Parse([]byte(`{"not":` + string(require) + `}`))
		if err != nil || r == nil {
			return // a boolean of predicates, or one that is deep
		}
		if r.Holds(value, true) == not.Holds(value, true) {
			t.Fatalf("%s and its contrary agree about %q", require, value)
		}
	})
}
