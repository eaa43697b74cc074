package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// U4: on a terminal a table fits: columns that may go are left out, then values are cut; elsewhere all of it is whole.
func TestTablesFit(t *testing.T) {
	cols := []Column{{Head: "ID", Keep: 6}, {Head: "RUN", Drop: 1}, {Head: "TYPE", Keep: 4}, {Head: "N", Drop: 2}, {Head: "STATUS"}}
	rows := [][]string{{"a", "r1", "x", "1", "open"}, {"order-number-seventeen", "r2", "nightly", "12", "closed"}}
	for _, tt := range []struct {
		width int
		want  []string
	}{
		{0, []string{
			"ID                      RUN  TYPE     N   STATUS", "a                       r1   x        1   open", "order-number-seventeen  r2   nightly  12  closed",
		}},
		{48, []string{
			"ID                      RUN  TYPE     N   STATUS", "a                       r1   x        1   open", "order-number-seventeen  r2   nightly  12  closed",
		}},
		{40, []string{
			"ID              RUN  TYPE     N   STATUS", "a               r1   x        1   open", "order-number-…  r2   nightly  12  closed",
		}},
		{24, []string{"ID      TYPE  N   STATUS", "a       x     1   open", "order…  nig…  12  closed"}},
		{10, []string{"ID      TYPE  STATUS", "a       x     open", "order…  nig…  closed"}},
	} {
		var b bytes.Buffer
		w := &tableWriter{w: &b, columns: cols, width: tt.width}
		for _, r := range rows {
			w.add(r)
		}
		w.flush()
		if diff := cmp.Diff(tt.want, strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")); diff != "" {
			t.Errorf("width %d (-want +got):\n%s", tt.width, diff)
		}
	}
}

// An error ends a table after the rows that came before it, and is no empty list.
func TestTableOfAnErrorSaysNothingOfEmptiness(t *testing.T) {
	var out, stderr bytes.Buffer
	a := NewApp(strings.NewReader(""), &out, &stderr, nil)
	bad := errors.New("broken")
	err := Lines(a, Table{Columns("N"), "none"}, func(yield func(int, error) bool) { yield(0, bad) }, func(int) []string { return []string{"x"} })
	if !errors.Is(err, bad) || out.Len() > 0 || stderr.Len() > 0 {
		t.Errorf("got %v, %q, %q", err, &out, &stderr)
	}
}
