package cli

import (
	"encoding/csv"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/droverhq/drover/decider/flow/syntax"
)

// plainly says of a flag that cannot be read what it wants, and of one that cmd does not have which
// one may be meant. The flag library names a function of Go, or the word twice.
func plainly(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok &&
		len(unknown.GetSpecifiedName()) > 1 {
		if like := nearFlag(cmd, unknown.GetSpecifiedName()); like != "" {
			return fmt.Errorf("%w; did you mean --%s?", err, like)
		}
		return err
	}
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	number, ok := errors.AsType[*strconv.NumError](err)
	if !ok {
		return fmt.Errorf("--%s is %q: %w", bad.GetFlag().Name, bad.GetValue(),
			plainList(bad.Unwrap()))
	}
	want := map[string]string{
		"bool": "true or false", "float64": "a number such as 1.5",
		"uint64": "a whole number from 0 on",
	}[bad.GetFlag().Value.Type()]
	if want == "" {
		want = "a whole number"
	}
	if errors.Is(number.Err, strconv.ErrRange) {
		return fmt.Errorf("--%s is %s, which is too large or too small: want %s",
			bad.GetFlag().Name, bad.GetValue(), want)
	}
	return fmt.Errorf("--%s is %q: want %s", bad.GetFlag().Name, bad.GetValue(), want)
}

// plainList is about lists, which the flag library reads as a line of CSV.
func plainList(err error) error {
	if _, ok := errors.AsType[*csv.ParseError](err); ok {
		return errors.New(
			`want one word, or several with commas between them; a word with a comma or a quote ` +
				`stands between quotes, and each quote in it twice: "a,b","say ""no"""`)
	}
	return err
}

// nearFlag finds the flag of cmd that is written almost as name, or begins with it; "" if there is
// none, or several begin so.
func nearFlag(cmd *cobra.Command, name string) string {
	var names, begin []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		names = append(names, f.Name)
		if strings.HasPrefix(f.Name, name) {
			begin = append(begin, f.Name)
		}
	})
	if best := syntax.Nearest(name, names); best != "" || len(begin) != 1 {
		return best
	}
	return begin[0]
}
