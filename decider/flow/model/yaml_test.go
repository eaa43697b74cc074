package model_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider/flow/model"
	"github.com/google/go-cmp/cmp"
)

// What YAML gives as data.
func TestValues(t *testing.T) {
	for yaml, want := range map[string]any{
		"1":                            int64(1),
		"-5":                           int64(-5),
		"+5":                           int64(5),
		"0":                            int64(0),
		"0x1F":                         int64(31),
		"0o17":                         int64(15),
		"9223372036854775807":          int64(9223372036854775807),
		"1.0":                          1.0,
		"-1.5e3":                       -1500.0,
		".5":                           0.5,
		"true":                         true,
		"yes":                          "yes",
		"no":                           "no",
		"null":                         nil,
		"~":                            nil,
		"'1'":                          "1",
		"!!str 1":                      "1",
		"!!str true":                   "true",
		"a b":                          "a b",
		"${x}":                         "${x}",
		"1e-7":                         1e-7, // as JSON.stringify writes it
		"1e+21":                        1e21,
		"-1E-07":                       -1e-7,
		"'1e-7'":                       "1e-7",
		"!!str 1e-7":                   "1e-7",
		"1e-7x":                        "1e-7x",
		"'99999999999999999999'":       "99999999999999999999",
		"{12e4: a}":                    map[string]any{"12e4": "a"},
		"2026-05-04":                   "2026-05-04",
		"\"a\\nb\"":                    "a\nb",
		"[1, [a], {b: c}]":             []any{int64(1), []any{"a"}, map[string]any{"b": "c"}},
		"{1: a, true: b}":              map[string]any{"1": "a", "true": "b"},
		"{}":                           map[string]any{},
		"[]":                           []any{},
		"|\n    a\n    b\n":            "a\nb\n",
		">-\n    a\n    b\n":           "a b",
		"[&a 1, *a]":                   []any{int64(1), int64(1)},
		"{<<: {a: 1, b: 2}, a: 3}":     map[string]any{"a": int64(3), "b": int64(2)},
		"{<<: [{a: 1}, {a: 2, b: 2}]}": map[string]any{"a": int64(1), "b": int64(2)},
	} {
		d, err := model.Parse("", []byte("input:\n  v: "+yaml+"\noutput: 1"), nil)
		if err != nil {
			t.Errorf("%s: %v", yaml, err)
			continue
		}
		if diff := cmp.Diff(want, d.Input["v"]); diff != "" {
			t.Errorf("%s: -want +got\n%s", yaml, diff)
		}
		data, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := model.Decode(data); err != nil || !cmp.Equal(back, d) {
			t.Errorf("%s: stored as %s, read back as %v, %v", yaml, data, back, err)
		}
	}
}

// Aliases share nothing once they are read: what one step does to its inputs, another does not see.
func TestAliasesAreCopies(t *testing.T) {
	d := parse(t, "steps:\n- {type: no-op, a: &a {b: 1}}\n- {type: no-op, a: *a}\n- &s {step: log x}\n- *s")
	m, ok := d.Steps[0].Inputs["a"].(map[string]any)
	if !ok {
		t.Fatalf("got %v", d.Steps[0].Inputs)
	}
	m["b"] = 2
	if got := d.Steps[1].Inputs["a"]; !cmp.Equal(got, map[string]any{"b": int64(1)}) {
		t.Errorf("got %v", got)
	}
	if d.Steps[2] == d.Steps[3] || d.Steps[3].Ref != "3" {
		t.Errorf("got %v and %v", d.Steps[2], d.Steps[3])
	}
}

func TestByteOrderMarkAndLineEnds(t *testing.T) {
	d := parse(t, "\ufeffsteps:\r\n- log a\r\n- log b\r\n")
	if len(d.Steps) != 2 || d.Steps[1].Inputs["message"] != "b" {
		t.Errorf("got %s", placelessJSON(t, d))
	}
}

// A text within { } is told how to hold ${...}, one with a tab how to indent, and so on.
func TestYAMLErrors(t *testing.T) {
	for _, tc := range []struct{ name, yaml, want string }{
		{"a key twice", "steps: [no-op]\nname: a\nname: b", `3:1: is not YAML: the key "name" is given twice (keep one of them)`},
		{"a step's key twice", "- step: no-op\n  id: a\n  id: b", `3:3: is not YAML: the key "id" is given twice`},
		{"one key in two forms", "input: {1: a, '1': b}\noutput: 1", `1:15: `},
		{"a tab", "steps:\n\t- no-op", "2:1: is not YAML: a tab stands where a word is to begin (indent by spaces, YAML allows no tabs)"},
		{"a reserved character", "- @a", "'@' is a reserved character (quote a text that begins with it)"},
		{"a percent sign", "- %a", "quote a text that begins with %"},
		{"a bracket within a list", "steps: [log [a], no-op]", "within [ ] and { }, quote texts that hold any of [ ] { } ,"},
		{"a bracket too many", "- ]", "quote a text that begins with a bracket"},
		{"a quote within a line", "- \"log\" a", "or begins with a quote or bracket"},
		{"an unknown escape", `- "log \q"`, "write a backslash twice within"},
		{"a line that begins with a bar", "- | a\n", "quote a text that begins with | or >"},
		{"a key that begins with a bracket", "output: {[1]: a}", "a key is one text"},
		{"a line without a key", "name: a\nb", "write KEY: VALUE as the lines around it"},
		{"a list after a key", "steps: - no-op", "begin the list in a line of its own"},
		{"an element that is not there", "- [no-op, , no-op]", "write a value in each place"},
		{"an unclosed bracket", "- [no-op", "(close each bracket, and quote a text that begins with one)"},
		{"an unclosed quote", "- 'no-op", "(close the quote; "},
		{"an expression in braces", "- {step: log ${x}, id: a}", "quote texts with ${...}"},
		{"a colon", "- step: no-op\n  name: a: b", "quote a text that holds a colon"},
		{"wrong indentation", "steps:\n  - no-op\n - no-op", "is not YAML"},
		{"two documents", "- no-op\n---\n- no-op", "2:1: a second document begins here"},
		{"a directive", "%YAML 1.2\n---\n- no-op", "YAML directives are not understood"},
		{"a tag", "- !foo no-op", "1:3: the tag !foo is not understood"},
		{"a tag of YAML", "output: !!binary aGk=", "the tag !!binary is not understood"},
		{"an anchor that is not there", "- *a", `1:3: there is no anchor "a" before this alias`},
		{"an anchor that holds itself", "output: &a [*a]", `there is no anchor "a" before this alias`},
		{"infinity", "output: .inf", ".inf is not a number that a flow can hold"},
		{"not a number", "output: .NaN", "is not a number that a flow can hold"},
		{"a large number", "output: 9223372036854775808", "does not fit into 64 bits"},
		{"a larger number", "output: 99999999999999999999", "1:9: the number 99999999999999999999 does not fit into 64 bits"},
		{"a large negative number", "output: -99999999999999999999", "does not fit into 64 bits"},
		{"a larger exponent", "output: 1e999", "1e999 is a number to some readers"},
		{"an exponent without a point", "output: 12e4", "12e4 is a number to some readers of YAML and a text to others (quote it"},
		{"an exponent that is too large", "output: 1e+999", "the number 1e+999 is too large (quote it"},
		{"a number with a zero before it", "output: 010", "quote it if it is a text"},
		{"a number with underscores", "output: 1_000", "quote it if it is a text"},
		{"a binary number", "output: 0b11", "quote it if it is a text"},
		{"a key that is a list", "output: {[a]: 1}", "1:"},
		{"a null key", "output:\n  ~: 1", "a key is empty"},
		{"a merge of a text", "output: {<<: a}", "<< takes maps only"},
		{"not UTF-8", "- log \xff", "1:7: the byte 0xff is not UTF-8"},
		{"a NUL byte", "- log a\n- log \x00", "2:7: the character U+0000 cannot stand in a definition"},
		{"an escape", "- log \x1b[31m", "U+001B"},
		{"a byte order mark within", "- log \ufeff", "U+FEFF"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := model.Parse("", []byte(tc.yaml), nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func laughs(levels int) string {
	var b strings.Builder
	b.WriteString("input:\n  a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := range levels {
		fmt.Fprintf(&b, "  a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 8), i)
	}
	return b.String() + "output: 1\n"
}

func indented(levels int) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// Texts that are made to hurt are refused soon, with words that say why.
func TestHostile(t *testing.T) {
	const mega = 1 << 20
	for _, tc := range []struct{ name, yaml, want string }{
		{"10 MB", strings.Repeat("- no-op\n", 10*mega/8), "is longer than 1048576 bytes"},
		{"1 MB of steps", strings.Repeat("- a\n", mega/4), "words and signs of YAML"},
		{"many steps", strings.Repeat("- no-op\n", 1001), "has more than 1000 steps"},
		{"many steps by aliases", "- &a [no-op, no-op, no-op, no-op, no-op, no-op, no-op, no-op, no-op, no-op]\n" + strings.Repeat("- *a\n", 100), "has more than 1000 steps"},
		{"many keys", func() string {
			var b strings.Builder
			for i := range 24_000 / 3 {
				fmt.Fprintf(&b, "k%d: v\n", i)
			}
			return b.String()
		}(), "is no key of a definition"},
		{"more keys", func() string {
			var b strings.Builder
			for i := range 70_000 {
				fmt.Fprintf(&b, "k%d: v\n", i)
			}
			return b.String()
		}(), "words and signs of YAML"},
		{"billion laughs", laughs(9), "when its aliases are written out"},
		{"long laughs", "input: {a: &a '" + strings.Repeat("x", 100_000) + "', b: [" + strings.Repeat("*a,", 100) + "*a]}\noutput: 1", "when its aliases are written out"},
		{"deep brackets", strings.Repeat("[", mega/2), "is nested deeper than 64"},
		{"deep closed brackets", strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "is nested deeper than 64"},
		{"deep braces", strings.Repeat("{a: ", mega/8), "is nested deeper than 64"},
		{"deep dashes", strings.Repeat("- ", mega/4) + "a", "is nested deeper than 64"},
		{"deep questions", strings.Repeat("? ", mega/4) + "a", "is nested deeper than 64"},
		{"deep anchors", strings.Repeat("&a ", mega/4) + "a", "is nested deeper than 64"},
		{"deep tags", strings.Repeat("!!str ", mega/8) + "a", "is nested deeper than 64"},
		{"anchors on lines of their own", strings.Repeat("&a\n", 12_000) + "a", "YAML"},
		{"deep brackets on lines of their own", strings.Repeat("[\n", 24_000), "is nested deeper than 64"},
		{"deep indentation", indented(1000), "is nested deeper than 64"},
		{"deep blocks", strings.Repeat("[", 30) + "no-op" + strings.Repeat("]", 30), "steps are nested deeper than 20"},
		{"deep lines", "- " + strings.Repeat("if ${x} then ", 30) + "no-op", "steps are nested deeper than 20"},
		{"very deep lines", "- " + strings.Repeat("if ${x} then ", 4000) + "no-op", "steps are nested deeper than 20"},
		{"deep handlers", "- " + strings.Repeat("{step: no-op, on-error: ", 30) + "no-op" + strings.Repeat("}", 30), "steps are nested deeper than 20"},
		{"deep steps", "- " + strings.Repeat("{step: ", 40) + "no-op" + strings.Repeat("}", 40), "steps are nested deeper than 20"},
		{"documents", strings.Repeat("---\na\n", mega/8), "a second document"},
		{"a long line", "- log " + strings.Repeat("x", mega/2), "the line is longer than 65536 bytes"},
		{"tabs", strings.Repeat("\t", mega/2) + "a: 1", "is not YAML"},
		{"spaces", strings.Repeat(" ", mega/2), "is empty"},
		{"line ends", strings.Repeat("\n", mega/2), "is empty"},
		{"comments", strings.Repeat("#\n", mega/2), "words and signs of YAML"},
		{"colons", strings.Repeat("a: ", 8000), "is not YAML"},
		{"colons in steps", strings.Repeat("- step: log a: b\n", 900), "is not YAML"},
		{"quotes", "a: " + strings.Repeat("'x' ", 8000), "is not YAML"},
		{"open quote", "a: '" + strings.Repeat("x ", mega/4), "is not YAML"},
		{"pipes", strings.Repeat("|\n", mega/4), "YAML"},
		{"a line to take apart", "- retry limit " + strings.Repeat("backoff ", 8000), "backoff stands within limit"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			start := time.Now()
			_, err := model.Parse("f", []byte(tc.yaml), nil)
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %.300v, want %s", err, tc.want)
			}
			if len(err.Error()) > 20_000 {
				t.Errorf("got a message of %d bytes", len(err.Error()))
			}
		})
	}
}

func FuzzYAML(f *testing.F) {
	f.Add("- log a\n- {step: let x = 1, id: b}\n")
	f.Add(laughs(2))
	f.Add("steps: [[no-op]]\non-error: goto end\nlock: {name: a, limit: 2}\nretention: 5 hash x\n")
	f.Add("- step: log a: b # c\n- type: workflow\n  target: 1..3\n  steps: [fail]\n  on-error: [retry limit 3]\n")
	f.Add("- step: switch ${x}\n  cases:\n  - {step: log a, condition: 1}\n  - foreach {a,b} in ${c} do return ${a}\n")
	f.Add("- &a {<<: {s: log}, b: *c}\n- !!str 1\n- ? a\n  : b\n")
	f.Add("- activity a with b = \"c, d\", e = 1.5\n- wait x = for signal y\n- transform value a | b\n")
	types := registry(f)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := model.Parse("f", []byte(text), &model.Options{Types: types})
		if err != nil {
			for _, e := range asErrors(t, err) {
				if e.Problem == "" || e.Line < 1 || e.Column < 1 {
					t.Fatalf("got %#v", e)
				}
			}
			return
		}
		data, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := model.Decode(data)
		if err != nil {
			t.Fatalf("%s\n%v", data, err)
		}
		again, err := back.Encode()
		if err != nil || string(again) != string(data) || back.Version() != d.Version() || !json.Valid(data) {
			t.Fatalf("got %s\nthen %s, %v", data, again, err)
		}
	})
}
