package typecheck_test

import (
	"slices"
	"testing"

	"github.com/droverhq/drover/internal/typecheck"
)

func TestErrors(t *testing.T) {
	c := typecheck.New(t, "strings")
	for source, want := range map[string][]string{
		"package a\nimport \"strings\"\nvar x string = strings.ToUpper(\"a\")": nil,
		"package a\nimport \"strings\"\nvar x int =\n\tstrings.ToUpper(\"a\")": {
			"4: cannot use strings.ToUpper(\"a\") (value of type string) as int value in variable declaration",
		},
		"package a\nfunc f() { g(); h() }": {"2: undefined: g", "2: undefined: h"},
	} {
		if got := c.Errors(t, source); !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", source, got, want)
		}
	}
}
