package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/droverhq/drover/schemas"
)

// guard is standard error: what the connection logs from its own goroutines and what the command says come one after the
// other, and nothing comes behind the end of the command.
type guard struct {
	mu    sync.Mutex
	w     io.Writer
	ended bool
}

// Write implements [io.Writer].
func (g *guard) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return len(b), nil
	}
	return g.w.Write(b)
}

func (g *guard) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
}

// document writes v to stdout: as one line of JSON, or as YAML.
func (a *app) document(v any) error { return a.writeDocument(a.stdout, v) }

// writeDocument is document for a writer in front of stdout.
func (a *app) writeDocument(w io.Writer, v any) error {
	if !a.yaml {
		return writeJSON(w, v)
	}
	if a.documents++; a.documents > 1 {
		if _, err := io.WriteString(w, "---\n"); err != nil {
			return err
		}
	}
	return writeYAML(w, v)
}

func (a *app) errDocument(v any) {
	write := writeJSON
	if a.yaml {
		write = writeYAML
	}
	if err := write(a.stderr, v); err != nil {
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

// outputs are the words of --output.
var outputs = []string{"table", "json", "yaml"}

// outputFlag is --output.
type outputFlag string

// Set implements [pflag.Value].
func (o *outputFlag) Set(s string) error {
	if !slices.Contains(outputs, s) {
		return fmt.Errorf("use one of %s", strings.Join(outputs, ", "))
	}
	*o = outputFlag(s)
	return nil
}

// String implements [pflag.Value].
func (o *outputFlag) String() string { return string(*o) }

// Type implements [pflag.Value].
func (o *outputFlag) Type() string { return "string" }

// chooseOutput decides between --output and its short form.
func (a *app) chooseOutput(fs *pflag.FlagSet) error {
	if a.json && a.output != "" && a.output != "json" {
		return fmt.Errorf("--json and --output %s exclude each other: leave out one of them", a.output)
	}
	if fs.Changed("json") && !a.json && a.output == "json" {
		return fmt.Errorf("--json=false and --output json exclude each other: leave out one of them")
	}
	a.yaml = a.output == "yaml"
	a.json = a.json || a.output == "json" || a.yaml
	return nil
}

// documentsWanted looks for the output flags in a command line that could not be read.
func documentsWanted(args []string) (json, yaml bool) {
	for i, arg := range args {
		if arg == "--" {
			break
		}
		word, ok := strings.CutPrefix(arg, "--output=")
		short, given := strings.CutPrefix(arg, "--json=")
		yes, err := strconv.ParseBool(short)
		switch {
		case ok:
		case arg == "--json", given && yes && err == nil:
			word = "json"
		case (arg == "-o" || arg == "--output") && i+1 < len(args):
			word = args[i+1]
		case strings.HasPrefix(arg, "-o"):
			word = strings.TrimPrefix(arg[2:], "=")
		}
		yaml = yaml || word == "yaml"
		json = json || word == "json" || word == "yaml"
	}
	return json, yaml
}

// whole is for values that are never cut.
const whole = math.MaxInt

// word makes text from outside safe to show on a terminal, as one word of a line: anything with white space, quotes or
// unprintable characters is quoted, and what is longer than most runes is cut; whole cuts nothing.
func word(s string, most int) string {
	s = cut(s, most)
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
