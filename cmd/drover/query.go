package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/droverhq/drover"
)

// parseQuery reads filters as words: status=failed type=order tag="two words". The names are those of the flags of list.
func parseQuery(text string) (drover.ListOptions, error) {
	var f filterFlags
	flags := &cobra.Command{Use: "list"}
	f.register(flags)
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
			return f.o, fmt.Errorf("%q is no filter: write NAME=VALUE, for example status=failed", w)
		case flags.Flags().Lookup(name) == nil:
			return f.o, fmt.Errorf("there is no filter %q: use one of %s", name, filterNames(flags.Flags()))
		case slices.Contains(seen, name):
			return f.o, fmt.Errorf("the filter %s stands twice: leave one out", name)
		}
		seen = append(seen, name)
		if err := flags.Flags().Set(name, value); err != nil {
			return f.o, fmt.Errorf("filter %s: %w", name, err)
		}
	}
	return f.options(nil)
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
		end := strings.IndexFunc(text, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == '"' })
		if end < 0 {
			return append(words, text), nil
		}
		word := text[:end]
		if text[end] == '"' {
			quoted, err := strconv.QuotedPrefix(text[end:])
			if err != nil {
				return nil, fmt.Errorf("a quoted value behind %q has no end: close it with \"", word)
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
