package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/droverhq/drover/schemas"
)

// document writes v as one line of JSON to stdout.
func (a *app) document(v any) error { return writeJSON(a.stdout, v) }

func (a *app) errDocument(v any) {
	if err := writeJSON(a.stderr, v); err != nil {
		fmt.Fprintf(a.stderr, "drover: %v\n", err)
	}
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// say writes a line for people to stdout.
func (a *app) say(format string, args ...any) error {
	_, err := fmt.Fprintf(a.stdout, format+"\n", args...)
	return err
}

// lines writes a list: with --json each value as a document, else as rows under the heads. Rows leave in batches, whose
// columns are aligned by themselves, so that a long list needs no memory and shows its beginning at once.
func lines[T any](a *app, heads []string, seq iter.Seq2[T, error], row func(T) []string) error {
	const batch = 200
	out := bufio.NewWriter(a.stdout)
	table := tabwriter.NewWriter(out, 2, 8, 2, ' ', 0)
	n := 0
	for v, err := range seq {
		if err != nil {
			table.Flush()
			out.Flush()
			return err
		}
		if a.json {
			if err := writeJSON(out, v); err != nil {
				return err
			}
			continue
		}
		if n == 0 {
			fmt.Fprintln(table, strings.Join(heads, "\t"))
		}
		fmt.Fprintln(table, strings.Join(row(v), "\t"))
		if n++; n%batch == 0 {
			table.Flush()
			out.Flush()
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return out.Flush()
}

// word makes text from outside safe to show on a terminal, as one word of a line: anything with white space, quotes or
// unprintable characters is quoted, and what is longer than most runes is cut.
func word(s string, most int) string {
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most-1]) + "…"
	}
	if s == "" {
		return `""`
	}
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == '"' || r == '='
	}) {
		return strconv.Quote(s)
	}
	return s
}

// sentence is like word for text that stands alone: spaces are fine.
func sentence(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return s
	}
	return strconv.Quote(s)
}

// size shows a number of bytes.
func size(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%dB", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1fKiB", float64(n)/(1<<10))
	default:
		return fmt.Sprintf("%.1fMiB", float64(n)/(1<<20))
	}
}

// when shows an instant in UTC, as the JSON does; "-" for none.
func when(ts schemas.Timestamp) string {
	if ts == 0 {
		return "-"
	}
	return ts.Time().Format("2006-01-02 15:04:05.000Z")
}

// span shows a time that passed: to the millisecond below an hour, to the second or minute above.
func span(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%s%.3fs", sign, d.Truncate(time.Millisecond).Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%s%dm%06.3fs", sign, int(d.Minutes()), (d % time.Minute).Truncate(time.Millisecond).Seconds())
	case d < 24*time.Hour:
		return fmt.Sprintf("%s%dh%02dm%02ds", sign, int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%s%dd%02dh%02dm", sign, int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60)
	}
}
