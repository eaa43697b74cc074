package cli

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

// guard is standard error: what the connection logs from its own goroutines and what the command
// says come one after the other, and nothing comes after the end of the command.
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

// Document writes v to stdout: as one line of JSON, or as YAML.
func (a *App) Document(v any) error { return a.WriteDocument(a.Stdout, v) }

// WriteDocument is document for a writer in front of stdout.
func (a *App) WriteDocument(w io.Writer, v any) error {
	if !a.yaml {
		return WriteJSON(w, v)
	}
	if a.documents++; a.documents > 1 {
		if _, err := io.WriteString(w, "---\n"); err != nil {
			return err
		}
	}
	return writeYAML(w, v)
}

func (a *App) errDocument(v any) {
	write := WriteJSON
	if a.yaml {
		write = writeYAML
	}
	if err := write(a.Stderr, v); err != nil {
		fmt.Fprintf(a.Stderr, "drover: %v\n", err)
	}
}

// WriteJSON writes v in one line.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Say writes a line for people to stdout.
func (a *App) Say(format string, args ...any) error {
	_, err := fmt.Fprintf(a.Stdout, format+"\n", args...)
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
func (a *App) chooseOutput(fs *pflag.FlagSet) error {
	if a.JSON && a.output != "" && a.output != "json" {
		return fmt.Errorf("--json and --output %s exclude each other: leave out one of them",
			a.output)
	}
	if fs.Changed("json") && !a.JSON && a.output == "json" {
		return fmt.Errorf(
			"--json=false and --output json exclude each other: leave out one of them")
	}
	a.yaml = a.output == "yaml"
	a.JSON = a.JSON || a.output == "json" || a.yaml
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

// Whole is for values that are never cut.
const Whole = math.MaxInt

// Word makes text from outside safe to show on a terminal, as one word of a line: anything with
// white space, quotes or unprintable characters is quoted, and what is longer than most runes is
// cut; whole cuts nothing.
func Word(s string, most int) string {
	s = Cut(s, most)
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

// Sentence is like word for text that stands alone: spaces are fine.
func Sentence(s string) string {
	if utf8.ValidString(s) &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return s
	}
	return strconv.Quote(s)
}

// Size shows a number of bytes.
func Size(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%dB", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1fKiB", float64(n)/(1<<10))
	default:
		return fmt.Sprintf("%.1fMiB", float64(n)/(1<<20))
	}
}

// When shows an instant in UTC, as the JSON does; "-" for none.
func When(ts schemas.Timestamp) string {
	if ts == 0 {
		return "-"
	}
	return ts.Time().Format("2006-01-02 15:04:05.000Z")
}

// Span shows a time that passed: to the millisecond below an hour, to the second or minute above.
func Span(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%s%.3fs", sign, d.Truncate(time.Millisecond).Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%s%dm%06.3fs", sign, int(d.Minutes()),
			(d % time.Minute).Truncate(time.Millisecond).Seconds())
	case d < 24*time.Hour:
		return fmt.Sprintf("%s%dh%02dm%02ds", sign, int(d.Hours()), int(d.Minutes())%60,
			int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%s%dd%02dh%02dm", sign, int(d.Hours())/24, int(d.Hours())%24,
			int(d.Minutes())%60)
	}
}

// Counted is a number with its noun: 1 node, 2 nodes.
func Counted[N int | int64 | uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Printable keeps what came from a file from commanding the terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r >= ' ' && r != 0x7f && (r < 0x80 || r > 0x9f) {
			return r
		}
		return '�'
	}, s)
}
