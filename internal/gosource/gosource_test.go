package gosource_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/droverhq/drover/internal/gosource"
)

const source = `package p

// T is a thing. It goes on
// in a second line with [Other] and [*pkg.Name].
//
// A second paragraph:
//
//  1. one
//     goes on
//  2. two
type T struct {
	// A is first,
	// and last.
	A, B int
	C    string // after
	d    int
	Other
}

type hidden struct{ A int }

// Kind of a thing.
type Kind string

// The kinds.
const (
	// KindOne is one.
	KindOne Kind = "one"
	KindTwo Kind = "two" // is two
	three        = "drei"
	number       = 4
)

// Alone stands alone.
const Alone Kind = "alone"

// Do does.
func (t *T) Do(a, b string, rest ...int) {}
func (t T) hiddenDo()                    {}
func (h hidden) Do()                     {}
func Free()                              {}
`

func read(t *testing.T, files map[string]string) (*gosource.Package, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return gosource.Read(dir)
}

func TestRead(t *testing.T) {
	got, err := read(t, map[string]string{"a.go": source, "a_test.go": "package p\n\ntype InTest int\n", "b.txt": "no source"})
	if err != nil {
		t.Fatal(err)
	}
	want := &gosource.Package{
		Types: []*gosource.Type{
			{
				Name: "T", File: "a.go",
				Doc:    "T is a thing. It goes on in a second line with Other and pkg.Name.\n\nA second paragraph:\n\n1. one goes on\n2. two",
				Fields: []*gosource.Field{{Name: "A", Doc: "A is first, and last."}, {Name: "B", Doc: "A is first, and last."}, {Name: "C", Doc: "after"}},
			},
			{Name: "Kind", File: "a.go", Doc: "Kind of a thing."},
		},
		Constants: []*gosource.Constant{
			{Name: "KindOne", Type: "Kind", Value: "one", File: "a.go", Doc: "KindOne is one."},
			{Name: "KindTwo", Type: "Kind", Value: "two", File: "a.go", Doc: "is two"},
			{Name: "three", Value: "drei", File: "a.go"},
			{Name: "Alone", Type: "Kind", Value: "alone", File: "a.go", Doc: "Alone stands alone."},
		},
		Methods: []*gosource.Method{{Receiver: "T", Name: "Do", Doc: "Do does.", Params: []string{"a", "b", "rest"}}},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(gosource.Package{})); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	if got := len(got.ConstantsOf("Kind")); got != 3 {
		t.Fatalf("got %d constants of Kind, want 3", got)
	}
	if got.Type("T").FieldDoc("C") != "after" || got.Type("T").FieldDoc("d") != "" || got.Type("None").FieldDoc("A") != "" {
		t.Fatal("FieldDoc gives the wrong text")
	}
	funcs := 0
	got.Each(func(n ast.Node) {
		if _, ok := n.(*ast.FuncDecl); ok {
			funcs++
		}
	})
	if funcs != 4 {
		t.Fatalf("got %d functions, want 4", funcs)
	}
}

func TestReadRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no source":  {map[string]string{"a_test.go": "package p"}, "name the folder of a package"},
		"bad source": {map[string]string{"a.go": "package"}, "a.go:1"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(t, tt.files); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
	if _, err := gosource.Read(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Fatal("got nil, want an error for a folder that is not there")
	}
}

func TestParagraph(t *testing.T) {
	if got, want := gosource.Paragraph(gosource.Flow("one\ntwo\n\nthree\n")), "one two"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}
