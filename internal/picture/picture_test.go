package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// The committed picture is the one that its description gives.
func TestCommitted(t *testing.T) {
	in, err := os.Open("../../docs/internals/architecture.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	want, err := draw(in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/internals/architecture.svg")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/internals/architecture.svg is not what docs/internals/architecture.txt describes: run make picture")
	}
	wellFormed(t, want)
}

func wellFormed(t *testing.T, svg string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		switch _, err := d.Token(); {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			t.Fatal(err)
		}
	}
}

func TestDraw(t *testing.T) {
	svg, err := draw(strings.NewReader(`# two boxes
size 300 100
group g 0 0 300 100 "a group"
box   a 10 10 80 40 "A & B" "second \"line\""
store b 200 10 80 40 "store"
arrow a.r b.l "an arrow"
both  a.b30 b.b "" 34,80 240,80
`))
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, svg)
	for _, want := range []string{
		`viewBox="0 0 300 100"`, "A &amp; B", "second &#34;line&#34;", `points="90,30 200,30" marker-end`,
		`points="34,50 34,80 240,80 240,50" marker-start`, ">an arrow<",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("got no %q in:\n%s", want, svg)
		}
	}
}

func TestDrawRefuses(t *testing.T) {
	const box = "size 9 9\nbox a 0 0 9 9 \"a\"\n"
	for _, tc := range []struct{ text, says string }{
		{"", "size is missing"},
		{"circle 1", `line 1: "circle": want size`},
		{"size 1", "want 2 numbers"},
		{"size 1 x", `"x" is no number`},
		{"box a 1 2 3 4", "and a title"},
		{"box a 1 2 3 4 \"open", "not closed"},
		{box + `box a 0 0 9 9 "a"`, `line 3: "a" is drawn already`},
		{box + "arrow a.r", "want FROM.SIDE"},
		{box + `arrow a.r b.l ""`, `"b.l": want NAME.SIDE`},
		{box + `arrow a.r a ""`, `"a": want NAME.SIDE`},
		{box + `arrow a.r a. ""`, `"a.": want NAME.SIDE`},
		{box + `arrow a.x a.l ""`, "the side is t, b, l or r"},
		{box + `arrow a.r101 a.l ""`, "0 to 100"},
		{box + `arrow a.r a.l "" 1`, "want 2 numbers"},
	} {
		if _, err := draw(strings.NewReader(tc.text)); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%q: got %v, want an error that says %q", tc.text, err, tc.says)
		}
	}
}
