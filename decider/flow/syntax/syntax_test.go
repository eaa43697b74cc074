package syntax_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/internal/duration"
	"github.com/google/go-cmp/cmp"
)

func TestWords(t *testing.T) {
	type w = syntax.Word
	for _, tc := range []struct {
		text string
		want []w
	}{
		{"", nil},
		{" \t\n ", nil},
		{"a  bc", []w{{"a", false, 0, 1}, {"bc", false, 3, 5}}},
		{`"a b" c`, []w{{"a b", true, 0, 5}, {"c", false, 6, 7}}},
		{`'it's' 'don't'`, []w{{"it's", true, 0, 6}, {"don't", true, 7, 14}}},
		// F1: quotes that hold a part of a word belong to its text
		{`"a", "b"`, []w{{`"a",`, false, 0, 4}, {"b", true, 5, 8}}},
		{`"a b/"c.txt "d"`, []w{{`"a b/"c.txt`, false, 0, 11}, {"d", true, 12, 15}}},
		{`"a"b`, []w{{`"a"b`, false, 0, 4}}},
		{`don't`, []w{{"don't", false, 0, 5}}},
		{`"\n\t\"\\\d"`, []w{{"\n\t\"\\\\d", true, 0, 12}}},
		{`'\n\'\\'`, []w{{`\n'\`, true, 0, 8}}},
		{"${a['b c']} ${d}x", []w{{"${a['b c']}", false, 0, 11}, {"${d}x", false, 12, 17}}},
		{"${a['}']}", []w{{"${a['}']}", false, 0, 9}}},
		{"${open and on", []w{{"${open and on", false, 0, 13}}},
		{`""`, []w{{"", true, 0, 2}}},
		{"f(x) y)", []w{{"f(x)", false, 0, 4}, {"y)", false, 5, 7}}},
	} {
		got, err := syntax.Words("words", tc.text)
		if err != nil {
			t.Errorf("%q: %v", tc.text, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%q: -want +got\n%s", tc.text, diff)
		}
	}
}

func TestScanStopsAtTheParenthesisAround(t *testing.T) {
	for text, want := range map[string]string{"a)": "a", "f(x))": "f(x)", `"a")`: "a", `"a)")`: "a)", "${x})": "${x}", "a": "a"} {
		if got, err := syntax.Scan("words", text, 0, 1); err != nil || got.Text != want {
			t.Errorf("%q: got %q, %v, want %q", text, got.Text, err, want)
		}
	}
}

func TestOpenQuotes(t *testing.T) {
	for text, offset := range map[string]int{`"a`: 0, `a 'b`: 2, `'tis true`: 0, `"a\"`: 0} {
		_, err := syntax.Words("words", text)
		e, ok := errors.AsType[*syntax.Error](err)
		if !ok || e.Offset != offset || !strings.Contains(e.Problem, "not closed") || e.Hint == "" {
			t.Errorf("%q: got %#v, want an open quote at %d", text, err, offset)
		}
	}
}

func TestWithin(t *testing.T) {
	_, lengthErr := duration.Parse("5 x")
	for _, tc := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{syntax.New("path", "a..b", 2, "no name", "write one"), `let "12345 a..b": no name (at 8): write one`},
		{lengthErr, `let "12345 a..b": the duration "x" is no unit (at 8): units are ns, us, ms, s, m, h, d, w and their long names`},
		{errors.New("odd"), `let "12345 a..b": odd (at 6)`},
	} {
		got := ""
		if err := syntax.Within("let", "12345 a..b", 6, tc.err); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("got %s\nwant %s", got, tc.want)
		}
	}
}

func TestMessagesAreShort(t *testing.T) {
	long := strings.Repeat("ä", 1<<20)
	err := syntax.New("let", long, 1<<30, syntax.Quote(long)+" is odd", "")
	if got := len(err.Error()); got > 250 {
		t.Errorf("got a message of %d bytes", got)
	}
	if e, _ := errors.AsType[*syntax.Error](err); e.Offset != len(long) {
		t.Errorf("got offset %d, want the end", e.Offset)
	}
	if strings.Contains(fmt.Sprint(err), "\\x") {
		t.Errorf("a rune is cut: %v", err)
	}
}

func TestNearest(t *testing.T) {
	names := []string{"regex", "glob", "equals", "less-than", "any", "all"}
	for got, want := range map[string]string{"regexp": "regex", "equal": "equals", "Glob": "glob", "lessthan": "less-than", "xyz": "", "": "", "anyy": "any"} {
		if near := syntax.Nearest(got, names); near != want {
			t.Errorf("%q: got %q, want %q", got, near, want)
		}
	}
}

func FuzzWords(f *testing.F) {
	for _, s := range []string{`a "b c" 'd'`, "${a['b']} c", "(a", `"\`, "${", "'a'b' ", "\xff\"", ") )"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words, err := syntax.Words("words", text)
		if e, ok := errors.AsType[*syntax.Error](err); err != nil && (!ok || e.Offset > len(text)) {
			t.Fatalf("%q: got %#v", text, err)
		}
		end := 0
		for _, w := range words {
			if w.Start < end || w.End <= w.Start || w.End > len(text) || !w.Quoted && w.Text != text[w.Start:w.End] {
				t.Fatalf("%q: got %+v after %d", text, w, end)
			}
			if strings.Trim(text[end:w.Start], " \t\r\n") != "" {
				t.Fatalf("%q: something is lost before %+v", text, w)
			}
			end = w.End
		}
	})
}

func TestCursor(t *testing.T) {
	c := syntax.Cursor{Text: " min( 12"}
	if c.Take('(') {
		t.Error("a bracket is taken where a word is")
	}
	if got := c.While(func(b byte) bool { return b >= 'a' }); got != "min" || !c.Take('(') || c.Take('(') {
		t.Errorf("got the word %q, and stand before %q", got, c.Rest())
	}
	if c.Rest() != "12" || c.At != 6 {
		t.Errorf("stand at %d, before %q", c.At, c.Rest())
	}
	c.While(func(byte) bool { return true })
	if c.Take('2') || c.Rest() != "" {
		t.Errorf("something is left after the end: %q", c.Rest())
	}
}
