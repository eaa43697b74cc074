package cli

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/droverhq/drover/internal/terminal"
)

// Column is one of a table.
type Column struct {
	Head string
	// keep is how many runes of a value stay at least when a terminal is too narrow; 0 for all of
	// them.
	Keep int
	// drop is when the column is left out on a terminal that is too narrow: 1 before 2; 0 for
	// never.
	Drop int
}

// Table is how a list is written for people.
type Table struct {
	Columns []Column
	None    string // what is said of an empty list; "" for nothing
}

// Columns are columns that are never cut.
func Columns(heads ...string) []Column {
	all := make([]Column, len(heads))
	for i, h := range heads {
		all[i] = Column{Head: h}
	}
	return all
}

const (
	tableGap   = 2   // blanks between columns
	tableBatch = 200 // rows that are aligned with each other
)

// Lines writes a list: each value as a document if documents are wanted, else as rows under the
// heads. Rows leave in batches, whose columns are aligned by themselves, so that a long list needs
// no memory and shows its beginning at once. On a terminal they fit its width, elsewhere values are
// whole.
func Lines[T any](a *App, t Table, seq iter.Seq2[T, error], row func(T) []string) error {
	out := bufio.NewWriter(a.Stdout)
	w := &tableWriter{w: out, columns: t.Columns, width: a.Width()}
	for v, err := range seq {
		if err != nil {
			w.flush()
			out.Flush()
			return err
		}
		if a.JSON {
			if err := a.WriteDocument(out, v); err != nil {
				return err
			}
			continue
		}
		if w.add(row(v)) {
			out.Flush()
		}
	}
	w.flush()
	if err := out.Flush(); err != nil {
		return err
	}
	if !a.JSON && !w.begun && t.None != "" {
		fmt.Fprintln(a.Stderr, t.None)
	}
	return nil
}

// Width is that of the terminal on stdout; 0 if it is none.
func (a *App) Width() int {
	if a.Columns > 0 {
		return a.Columns
	}
	return terminal.Width(a.Stdout)
}

// tableWriter aligns rows batch by batch. Errors are kept by the writer after it.
type tableWriter struct {
	w       io.Writer
	columns []Column
	width   int // 0 for any
	rows    [][]string
	begun   bool  // a batch was written
	shown   []int // the columns that are shown, once begun
}

// add takes a row and tells whether a batch was written.
func (t *tableWriter) add(row []string) bool {
	if t.rows = append(t.rows, row); len(t.rows) < tableBatch {
		return false
	}
	t.flush()
	return true
}

func (t *tableWriter) flush() {
	if len(t.rows) == 0 {
		return
	}
	rows := t.rows
	if !t.begun {
		heads := make([]string, len(t.columns))
		for i, c := range t.columns {
			heads[i] = c.Head
		}
		rows = append([][]string{heads}, rows...)
	}
	t.begun, t.rows = true, nil
	widths := make([]int, len(t.columns))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	if t.shown == nil {
		t.shown = t.choose(widths)
	}
	t.shrink(widths)
	for _, row := range rows {
		var line strings.Builder
		for n, i := range t.shown {
			cell := Cut(row[i], widths[i])
			line.WriteString(cell)
			if n < len(t.shown)-1 {
				line.WriteString(strings.Repeat(" ",
					widths[i]-utf8.RuneCountInString(cell)+tableGap))
			}
		}
		fmt.Fprintln(t.w, line.String())
	}
}

// least is how narrow a column may become.
func (t *tableWriter) least(i int, widths []int) int {
	c := t.columns[i]
	if c.Keep == 0 {
		return widths[i]
	}
	return min(widths[i], max(c.Keep, utf8.RuneCountInString(c.Head)))
}

// choose leaves out columns until the rest can fit.
func (t *tableWriter) choose(widths []int) []int {
	shown := make([]int, len(t.columns))
	for i := range shown {
		shown[i] = i
	}
	for t.width > 0 {
		need, next := -tableGap, -1
		for n, i := range shown {
			need += t.least(i, widths) + tableGap
			if drop := t.columns[i].Drop; drop > 0 &&
				(next < 0 || drop < t.columns[shown[next]].Drop) {
				next = n
			}
		}
		if need <= t.width || next < 0 {
			break
		}
		shown = slices.Delete(shown, next, next+1)
	}
	return shown
}

// shrink cuts the widest of the columns that may be cut until all fit.
func (t *tableWriter) shrink(widths []int) {
	for t.width > 0 {
		sum, widest := -tableGap, -1
		for _, i := range t.shown {
			sum += widths[i] + tableGap
			if widths[i] > t.least(i, widths) && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if sum <= t.width || widest < 0 {
			return
		}
		widths[widest]--
	}
}

// Cut shortens a text to so many runes, the last of which then is an ellipsis.
func Cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:max(most-1, 0)]) + "…"
}
