package rootcause_test

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/internal/rootcause"
)

func TestOf(t *testing.T) {
	for details, want := range map[string]string{
		``:                                 "",
		`null`:                             "",
		`"no"`:                             "",
		`{"n":1}`:                          "",
		`{"message":"no"}`:                 "",
		`{"cause":{"message":"a"}}`:        "",
		`{"message":"no","cause":"a"}`:     "",
		`{"message":"no","cause":{"n":1}}`: "",
		`{"message":"no","cause":{"message":"a"}}`:    "a",
		`{"message":"no","cause":{"message":"a\nb"}}`: `"a\nb"`,
		`{"message":"m","cause":{"message":"a","step":"0","cause":{"message":"there is no x","type":"expression","step":"0.steps.1"}}}`: "expression: there is no x (at step 0.steps.1)",
		`{"message":"m","cause":{"message":"corrupt","type":"corrupt","step":"2"}}`:                                                     "corrupt (at step 2)",
		`{"message":"m","cause":{"message":"` + strings.Repeat("é", 400) + `"}}`:                                                        strings.Repeat("é", 300) + "…",
	} {
		if got := rootcause.Of([]byte(details)); got != want {
			t.Errorf("%s: got %q, want %q", details, got, want)
		}
	}
}
