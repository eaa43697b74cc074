package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/droverhq/drover/schemas"
)

// durationFlag is a time on the command line: 90 or 90s, 1m30s, or NONE for no limit where a command allows it.
type durationFlag struct {
	value     time.Duration
	unlimited bool // NONE is allowed
	some      bool // 0 is not: it would mean the default
}

var _ pflag.Value = (*durationFlag)(nil)

// Set implements [pflag.Value].
func (d *durationFlag) Set(s string) error {
	quoted, err := json.Marshal(s)
	if err != nil {
		return err
	}
	var v schemas.Duration
	if err := v.UnmarshalJSON(quoted); err != nil {
		want := "want seconds (90, 0.5) or a time such as 1m30s, up to 292 years"
		if d.unlimited {
			want += ", or NONE"
		}
		return errors.New(want)
	}
	if v == schemas.Unlimited && !d.unlimited {
		return fmt.Errorf("NONE is not possible here: leave the flag out, or give a time such as 90s")
	}
	if v == 0 && d.some {
		return fmt.Errorf("0 is not possible here: leave the flag out, or give a time such as 1s")
	}
	d.value = v.Std()
	return nil
}

// String implements [pflag.Value].
func (d *durationFlag) String() string {
	if d.value == 0 {
		return ""
	}
	return schemas.Duration(d.value).String()
}

// Type implements [pflag.Value].
func (d *durationFlag) Type() string { return "duration" }

// inputFlag is a payload on the command line, and what --raw says about it.
type inputFlag struct {
	name string // of the flag; "input" if empty
	text string
	raw  bool
}

func (f *inputFlag) register(cmd *cobra.Command, what string) {
	f.registerJSON(cmd, what)
	cmd.Flags().BoolVar(&f.raw, "raw", false, "take the bytes of --"+f.name+" as they are; they need not be JSON")
}

// registerJSON leaves out --raw, for a second payload of a command.
func (f *inputFlag) registerJSON(cmd *cobra.Command, what string) {
	f.name = cmp.Or(f.name, "input")
	cmd.Flags().StringVar(&f.text, f.name, "", what+": JSON, @FILE, or - for standard input")
}

// maxInput is the most that servers take if nothing else is said, and stops a pipe without end.
const maxInput = 64 << 20

// readMost reads one byte more than is allowed, so that it can be refused.
func readMost(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, maxInput+1)) }

// read returns the payload; nil if the flag was not given.
func (f *inputFlag) read(cmd *cobra.Command, stdin io.Reader) (schemas.Payload, error) {
	if !cmd.Flags().Changed(f.name) {
		return nil, nil
	}
	var body []byte
	var err error
	from := "--" + f.name
	switch {
	case f.text == "-":
		from += " - (standard input)"
		body, err = readMost(stdin)
	case strings.HasPrefix(f.text, "@"):
		from += " " + f.text
		var file *os.File
		if file, err = os.Open(f.text[1:]); err == nil {
			body, err = readMost(file)
			file.Close()
		}
	default:
		body = []byte(f.text)
	}
	switch {
	case err != nil:
		return nil, usage(cmd, fmt.Errorf("%s: %w", from, err))
	case len(body) > maxInput:
		return nil, usage(cmd, fmt.Errorf("%s has more than %s", from, size(maxInput)))
	case f.raw:
		return body, nil
	}
	if err := checkJSON(body); err != nil {
		way := ""
		if cmd.Flags().Lookup("raw") != nil && f.name != signalInput {
			way = ", or add --raw to send the bytes as they are"
		}
		return nil, usage(cmd, fmt.Errorf(`%s is not JSON: %w; write text as '"text"'%s`, from, err, way))
	}
	return bytes.TrimSpace(body), nil
}

// mayBeEmpty are the flags in which no word is a word of its own: no context, no reason, every prefix, or a payload, which is judged as one.
var mayBeEmpty = []string{"context", "reason", "note", "prefix", "input", signalInput, "details"}

// refuseEmpty refuses flags that are given without a word in them, such as that of a variable that is not set: they would mean all that leaving
// them out does, such as every workflow, the namespace "default", or a store in memory.
func refuseEmpty(fs *pflag.FlagSet) (err error) {
	fs.Visit(func(f *pflag.Flag) {
		empty := f.Value.Type() == "string" && f.Value.String() == ""
		if list, ok := f.Value.(pflag.SliceValue); ok {
			empty = !slices.ContainsFunc(list.GetSlice(), func(s string) bool { return s != "" })
		}
		if err == nil && empty && !slices.Contains(mayBeEmpty, f.Name) {
			err = fmt.Errorf("--%s is empty: say what is meant, or leave the flag out", f.Name)
		}
	})
	return err
}

// refuseTimeout is for commands that have no end of their own.
func refuseTimeout(cmd *cobra.Command) error {
	return refuseFlags(cmd, []string{"timeout"}, fmt.Sprintf("but %s goes on until it is stopped: leave it out", cmd.Name()))
}

// refuseFlags refuses flags that say nothing here, and says why.
func refuseFlags(cmd *cobra.Command, names []string, why string) error {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return usage(cmd, fmt.Errorf("--%s is given, %s", name, why))
		}
	}
	return nil
}

// argNames demands exactly these arguments and says which one is missing or too much.
func argNames(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return fmt.Errorf("%s is missing", strings.Join(names[len(args):], " and "))
		case len(args) > len(names):
			return fmt.Errorf("argument %q is too much", args[len(names)])
		}
		return nil
	}
}

// filled is argNames for arguments that nothing stands for if they are empty, such as by a variable that is not set.
func filled(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := argNames(names...)(cmd, args); err != nil {
			return err
		}
		if i := slices.Index(args, ""); i >= 0 {
			return fmt.Errorf("%s is empty", names[i])
		}
		return nil
	}
}

// attributesFlag takes NAME=VALUE, once for each time that it is given. The map of the flag library reads a line of CSV, so that a value with a
// comma and a = would be two attributes, and one with quotes would lose them.
type attributesFlag struct{ to *map[string]string }

var _ pflag.Value = attributesFlag{}

// Set implements [pflag.Value].
func (f attributesFlag) Set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return errors.New("want NAME=VALUE")
	}
	if *f.to == nil {
		*f.to = map[string]string{}
	}
	(*f.to)[name] = value
	return nil
}

// String implements [pflag.Value].
func (f attributesFlag) String() string { return "" }

// Type implements [pflag.Value].
func (f attributesFlag) Type() string { return "name=value" }

// timeFlag is an instant on the command line: 2026-01-02T03:04:05Z, 2026-01-02 (in UTC), or 90m for that long ago.
type timeFlag struct{ value time.Time }

var _ pflag.Value = (*timeFlag)(nil)

// Set implements [pflag.Value].
func (t *timeFlag) Set(s string) error {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", time.DateTime, time.DateOnly} {
		if v, err := time.Parse(layout, s); err == nil {
			t.value = v
			return nil
		}
	}
	var ago durationFlag
	if strings.ContainsAny(s, "hms") && ago.Set(s) == nil {
		t.value = time.Now().Add(-ago.value)
		return nil
	}
	return fmt.Errorf("want a time such as 2026-01-02T03:04:05Z, a day such as 2026-01-02, or 90m for that long ago")
}

// String implements [pflag.Value].
func (t *timeFlag) String() string {
	if t.value.IsZero() {
		return ""
	}
	return t.value.UTC().Format(time.RFC3339Nano)
}

// Type implements [pflag.Value].
func (t *timeFlag) Type() string { return "time" }
