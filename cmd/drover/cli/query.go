package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/ops/query"
	"github.com/droverhq/drover/schemas"
)

// ParseQuery reads filters as words: status=failed type=order tag="two words". The names are those
// of the flags of list.
func ParseQuery(text string) (drover.ListOptions, error) {
	var f FilterFlags
	flags := &cobra.Command{Use: "list"}
	f.Register(flags)
	words, err := queryWords(text)
	if err != nil {
		return f.o, err
	}
	if len(words) == 0 {
		return f.o, fmt.Errorf("the query is empty: say for example status=failed type=order")
	}
	var seen []string
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		switch {
		case !ok || value == "":
			return f.o, fmt.Errorf("%q is no filter: write NAME=VALUE, for example status=failed",
				w)
		case flags.Flags().Lookup(name) == nil:
			return f.o, fmt.Errorf("there is no filter %q: use one of %s",
				name, filterNames(flags.Flags()))
		case slices.Contains(seen, name):
			return f.o, fmt.Errorf("the filter %s stands twice: leave one out", name)
		}
		seen = append(seen, name)
		if err := flags.Flags().Set(name, value); err != nil {
			return f.o, fmt.Errorf("filter %s: %w", name, err)
		}
	}
	return f.Options(nil)
}

func filterNames(fs *pflag.FlagSet) string {
	var names []string
	fs.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// queryWords splits at blanks; a value may be a quoted text.
func queryWords(text string) ([]string, error) {
	var words []string
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		end := strings.IndexFunc(text,
			func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == '"' })
		if end < 0 {
			return append(words, text), nil
		}
		word := text[:end]
		if text[end] == '"' {
			quoted, err := strconv.QuotedPrefix(text[end:])
			if err != nil {
				return nil, fmt.Errorf("a quoted value after %q has no end: close it with \"", word)
			}
			value, err := strconv.Unquote(quoted)
			if err != nil {
				return nil, fmt.Errorf("the value %s is no text: %w", quoted, err)
			}
			word, end = word+value, end+len(quoted)
		}
		words, text = append(words, word), text[end:]
	}
	return words, nil
}

// FilterFlags are those of list and count.
type FilterFlags struct {
	o                                                      drover.ListOptions
	status                                                 string
	startedAfter, startedBefore, closedAfter, closedBefore TimeFlag
}

// Register adds the flags to a command.
func (f *FilterFlags) Register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.status, "status", "", "only with this status: "+
		strings.Join(statusWords(), ", ")+"; closed is any but open and paused")
	fs.StringVar(&f.o.Type, "type", "", "only of this type")
	fs.StringVar(&f.o.Prefix, "prefix", "", "only ids that begin so")
	fs.StringVar(&f.o.WorkflowID, "id", "", "only the runs of this workflow id")
	fs.StringVar(&f.o.Tag, "tag", "", "only with this tag")
	fs.StringVar(&f.o.Parent, "parent", "", "only children of this workflow id")
	fs.Var(&f.startedAfter, "started-after", "only started after this time")
	fs.Var(&f.startedBefore, "started-before", "only started before this time")
	fs.Var(&f.closedAfter, "closed-after", "only closed after this time")
	fs.Var(&f.closedBefore, "closed-before", "only closed before this time")
}

// Options are what the flags ask for. Wrong ones are wrong usage of cmd.
func (f *FilterFlags) Options(cmd *cobra.Command) (drover.ListOptions, error) {
	o := f.o
	if f.status != "" && !slices.Contains(statuses, schemas.Status(f.status)) {
		return o, Usage(cmd, fmt.Errorf("--status is %q: use one of %v", f.status, statuses))
	}
	o.Status = schemas.Status(f.status)
	o.StartedAfter, o.StartedBefore = f.startedAfter.Value, f.startedBefore.Value
	o.ClosedAfter, o.ClosedBefore = f.closedAfter.Value, f.closedBefore.Value
	return o, nil
}

// Condition is what the flags ask for in the language of queries; empty if they ask for nothing.
// Options must have found them right.
func (f *FilterFlags) Condition() string {
	var all []string
	add := func(field, operator, value string) {
		if value != "" {
			all = append(all, field+" "+operator+" "+query.Value{Text: value}.String())
		}
	}
	add("status", "=", f.status)
	add("type", "=", f.o.Type)
	add("id", "STARTS_WITH", f.o.Prefix)
	add("id", "=", f.o.WorkflowID)
	add("tag", "=", f.o.Tag)
	add("parent", "=", f.o.Parent)
	for _, t := range []struct {
		field, operator string
		at              time.Time
	}{
		{"started", ">", f.startedAfter.Value},
		{"started", "<", f.startedBefore.Value},
		{"closed", ">", f.closedAfter.Value},
		{"closed", "<", f.closedBefore.Value},
	} {
		if !t.at.IsZero() {
			add(t.field, t.operator, t.at.UTC().Format(time.RFC3339Nano))
		}
	}
	return strings.Join(all, " AND ")
}
