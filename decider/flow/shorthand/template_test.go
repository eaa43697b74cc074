package shorthand_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider/flow/shorthand"
	"pgregory.net/rapid"
)

func show(got []shorthand.Capture) string {
	var parts []string
	for _, c := range got {
		if c.Flag {
			parts = append(parts, c.Name)
			continue
		}
		parts = append(parts, fmt.Sprintf("%s=<%s>", c.Name, c.Text))
	}
	return strings.Join(parts, " ")
}

// Each rule of shorthand.
func TestTemplate(t *testing.T) {
	for _, tc := range []struct{ rule, template, text, want string }{
		{"one word", "${a} ${b}", "x y", "a=<x> b=<y>"},
		{"the last takes all the rest", "${a} ${b}", "x y  z ", "a=<x> b=<y  z>"},
		{"a single variable is the last", "${a}", " x y ", "a=<x y>"},
		{"all words are needed", "${a} ${b}", "x", "!1"},
		{"many words are as few as do", `${a...} " in " ${b}`, "x y in z in w", "a=<x y> b=<z in w>"},
		{"many words are at least one", `${a...} "in" ${b}`, "in in z", "a=<in> b=<z>"},
		{"the last, though groups follow", `${a} [ "is" ${b} ]`, "x", "a=<x>"},
		{"a variable before a group is one word", `${a} [ "is" ${b} ]`, "x y", "!2"},
		{"a literal", `"to" ${a}`, "to x", "a=<x>"},
		{"a literal that is missing", `"to" ${a}`, "from x", "!0"},
		{"a literal without spaces clings", `"to" ${a}`, "tox", "a=<x>"},
		{"a literal with a space after it does not", `"to " ${a}`, "tox", "!0"},
		{"a literal with a space before it", `"a" " b" ${c}`, "a b c", "c=<c>"},
		{"a literal with a space before it does not cling", `"a" " b" ${c}`, "ab c", "!1"},
		{"a literal without spaces clings to a literal", `"a" "b" ${c}`, "ab c", "c=<c>"},
		{"white space never matters", `" to "  ${a}   [ " at "   ${b} ]`, "  to \n x\t at   y ", "a=<x> b=<y>"},
		{"a literal of words", `"for signal " ${a}`, "for   signal x", "a=<x>"},
		{"a literal of words that cling", `"for signal " ${a}`, "forsignal x", "!0"},
		{"a word holds what looks like a literal", `${a} "=" ${b}`, "x=1 = 2", "a=<x=1> b=<2>"},
		{"no spaces around =", `${a} " = " ${b}`, "x=1", "!3"},
		{"groups are greedy", "[ ${a} ] ${b}", "x y", "a=<x> b=<y>"},
		{"and are left out if need be", "[ ${a} ] ${b}", "x", "b=<x>"},
		{"the first group first", "[ ${a} ] [ ${b} ] ${c}", "x y", "a=<x> c=<y>"},
		{"groups in groups", `${a} [ " in " ${b} [ " do " ${c} ] ]`, "x in y do z w", "a=<x> b=<y> c=<z w>"},
		{"groups in groups, one of them", `${a} [ " in " ${b} [ " do " ${c} ] ]`, "x in y", "a=<x> b=<y>"},
		{"the inner group alone does not", `${a} [ " in " ${b} [ " do " ${c} ] ]`, "x do y", "!2"},
		{"let", `[ ${type} ] ${name} [ " = " ${value...} ]`, "integer x = 1 + 2", "type=<integer> name=<x> value=<1 + 2>"},
		{"let without a type", `[ ${type} ] ${name} [ " = " ${value...} ]`, "x = 1 = 2", "name=<x> value=<1 = 2>"},
		{"let of a variable that is called type", `[ ${type} ] ${name} [ " = " ${value...} ]`, "integer = 1", "name=<integer> value=<1>"},
		{"flags", `[ ?${f} "force" ] ${a}`, "force x", "f a=<x>"},
		{"flags that are absent", `[ ?${f} "force" ] ${a}`, "x", "a=<x>"},
		{"flags that are dropped on the way back", `[ ?${f} "force" ] ${a}`, "force", "a=<force>"},
		{"dots", "${a.b} ${a.c}", "x y", "a.b=<x> a.c=<y>"},
		{"a word in quotes", "${a} ${b}", `"x y" z`, "a=<x y> b=<z>"},
		{"a word in single quotes", "${a} ${b}", `'x y' z`, "a=<x y> b=<z>"},
		{"quotes hide literals", `${a...} " in " ${b}`, `x "y in z" in w`, `a=<x "y in z"> b=<w>`},
		{"the last is unwrapped if it is one", "${a}", `"x y"`, "a=<x y>"},
		{"the last keeps its quotes if it is more", "${a}", `"x y" z`, `a=<"x y" z>`},
		{"the last keeps its quotes if they are two", "${a}", `"x" "y"`, `a=<"x" "y">`},
		{"escapes", "${a}", `"x \" \\ y"`, `a=<x " \ y>`},
		{"other escapes stay", "${a}", `"x \n y"`, `a=<x \n y>`},
		{"an apostrophe is no quote", "${a} ${b}", "don't do 'it", "a=<don't> b=<do 'it>"},
		{"a quote within a word is none", "${a} ${b}", `x="y z"`, `a=<x="y> b=<z">`},
		{"an expression is one word", "${a} ${b}", "${x['y z']}w v", "a=<${x['y z']}w> b=<v>"},
		{"an expression that never ends is not", "${a} ${b}", "${x y", "a=<${x> b=<y>"},
		{"braces at the start of a word", "${a} ${b}", "{x, y} z", "a=<{x, y}> b=<z>"},
		{"nothing, if all is optional", "[ ${a} ]", "", ""},
		{"fixed order", `[ " limit " ${l...} ] [ " backoff " ${b...} ]`, "backoff 1s limit 5", "b=<1s limit 5>"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			template, err := shorthand.Parse(tc.template)
			if err != nil {
				t.Fatal(err)
			}
			got, err := template.Match(tc.text, false)
			text := show(got)
			if m, ok := errors.AsType[*shorthand.Mismatch](err); ok {
				text = fmt.Sprintf("!%d", m.Offset)
			}
			if text != tc.want {
				t.Errorf("%s on %q: got %s, want %s", tc.template, tc.text, text, tc.want)
			}
			for _, c := range got {
				if c.Offset >= 0 && tc.text[c.Offset:c.Offset+len(c.Text)] != c.Text {
					t.Errorf("%s: %q is not at %d", c.Name, c.Text, c.Offset)
				}
			}
		})
	}
}

func TestRawTemplate(t *testing.T) {
	template, err := shorthand.Parse("${a} ${b}")
	if err != nil {
		t.Fatal(err)
	}
	got, err := template.Match(`"x y" "z w"`, true)
	if want := `a=<x y> b=<"z w">`; err != nil || show(got) != want {
		t.Errorf("got %s, %v, want %s", show(got), err, want)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"${a":                       "never closed",
		"${}":                       "name of a variable",
		"${a b}":                    "name of a variable",
		"${a.}":                     "name of a variable",
		"${....}":                   "name of a variable",
		"a":                         "expected ${name}",
		"$a":                        "expected ${name}",
		`"a`:                        "never closed",
		`""`:                        "literal is empty",
		`" "`:                       "literal is empty",
		"[ ${a}":                    "bracket [ is never closed",
		"${a} ]":                    "expected ${name}",
		"[ ]":                       "group is empty",
		"[ ?${a} ]":                 "group is empty",
		"[ ?a ]":                    "never closed",
		"${a} ${a}":                 "in each other's way",
		"${a} ${a.b}":               "in each other's way",
		"${a.b} [ ?${a} \"x\" ]":    "in each other's way",
		strings.Repeat("[ ", 11):    "deeper than 10",
		strings.Repeat("${a}", 300): "longer than 1000",
	} {
		if got, err := shorthand.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30s: got %v, %v, want %s", text, got, err, want)
		}
	}
}

func TestGrammar(t *testing.T) {
	template, err := shorthand.Parse(`[ ?${f} "force" ] ${a.b} [ " in " ${c...} ]`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := template.Grammar(), "[force] A.B [in C...]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := strings.Join(template.Variables(), " "), "f a.b c"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A line that is made to be taken apart in many ways ends soon.
func TestTemplateTakesBoundedTime(t *testing.T) {
	template, err := shorthand.Parse(`${a...} " x " ${b...} " x " ${c...} " x " ${d...} " x " ${e...} "never"`)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if got, err := template.Match(strings.Repeat("x ", 20_000), false); err == nil {
		t.Errorf("got %s", show(got))
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

// A template without quotes, brackets and literals that could be words takes apart what it put together.
func TestTemplateProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z0-9.]{1,5}`)
		a, b := word.Draw(t, "a"), rapid.SliceOfN(word, 1, 4).Draw(t, "b")
		withC := rapid.Bool().Draw(t, "with c")
		text := a + " IN " + strings.Join(b, "  ")
		want := "a=<" + a + "> b=<" + strings.Join(b, "  ") + ">"
		if withC {
			c := rapid.SliceOfN(word, 1, 4).Draw(t, "c")
			text += " DO " + strings.Join(c, " ")
			want += " c=<" + strings.Join(c, " ") + ">"
		}
		template, err := shorthand.Parse(`${a} " IN " ${b...} [ " DO " ${c...} ]`)
		if err != nil {
			t.Fatal(err)
		}
		got, err := template.Match(text, false)
		if err != nil || show(got) != want {
			t.Fatalf("%q: got %s, %v, want %s", text, show(got), err, want)
		}
	})
}

func FuzzTemplate(f *testing.F) {
	for _, s := range [][2]string{
		{`[ ${type} ] ${name} [ " = " ${value...} ]`, "integer x = 1"},
		{`[ ?${f} "force" ] ${a.b} "x" ${c...}`, `force "a b" x 'c`},
		{"${a...} ${b...} ${c...}", "x y ${z w} {v u} t"},
		{"[ [ [ ${a} ] ] ]", "x"},
		{`" a b " ${c}`, "a  b c"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, text, line string) {
		template, err := shorthand.Parse(text)
		if err != nil {
			return
		}
		got, err := template.Match(line, len(line)%2 == 0)
		if err != nil {
			if m, ok := errors.AsType[*shorthand.Mismatch](err); !ok || m.Offset < 0 || m.Offset > len(line) {
				t.Fatalf("got %#v", err)
			}
			return
		}
		for _, c := range got {
			if c.Offset >= 0 && (c.Offset+len(c.Text) > len(line) || line[c.Offset:c.Offset+len(c.Text)] != c.Text) {
				t.Fatalf("%+v is not in %q", c, line)
			}
		}
	})
}
