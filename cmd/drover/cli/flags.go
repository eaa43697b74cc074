package cli

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
	"github.com/droverhq/drover/schemas/ops"
)

// DurationFlag is a time on the command line: 90 or 90s, 1m30s, or NONE for no limit where a
// command allows it.
type DurationFlag struct {
	Value     time.Duration
	Unlimited bool // NONE is allowed
	Some      bool // 0 is not: it would mean the default
}

var _ pflag.Value = (*DurationFlag)(nil)

// Set implements [pflag.Value].
func (d *DurationFlag) Set(s string) error {
	quoted, err := json.Marshal(s)
	if err != nil {
		return err
	}
	var v schemas.Duration
	if err := v.UnmarshalJSON(quoted); err != nil {
		want := "want seconds (90, 0.5) or a time such as 1m30s, up to 292 years"
		if d.Unlimited {
			want += ", or NONE"
		}
		return errors.New(want)
	}
	if v == schemas.Unlimited && !d.Unlimited {
		return fmt.Errorf(
			"NONE is not possible here: leave the flag out, or give a time such as 90s")
	}
	if v == 0 && d.Some {
		return fmt.Errorf("0 is not possible here: leave the flag out, or give a time such as 1s")
	}
	d.Value = v.Std()
	return nil
}

// String implements [pflag.Value].
func (d *DurationFlag) String() string {
	if d.Value == 0 {
		return ""
	}
	return schemas.Duration(d.Value).String()
}

// Type implements [pflag.Value].
func (d *DurationFlag) Type() string { return "duration" }

// InputFlag is a payload on the command line, and what --raw says about it.
type InputFlag struct {
	Name string // of the flag; "input" if empty
	Text string
	raw  bool
}

// Register adds the flag and --raw to a command. What says what the payload is.
func (f *InputFlag) Register(cmd *cobra.Command, what string) {
	f.RegisterJSON(cmd, what)
	cmd.Flags().BoolVar(&f.raw, "raw", false,
		"take the bytes of --"+f.Name+" as they are; they need not be JSON")
}

// RegisterJSON leaves out --raw, for a second payload of a command.
func (f *InputFlag) RegisterJSON(cmd *cobra.Command, what string) {
	f.Name = cmp.Or(f.Name, "input")
	cmd.Flags().StringVar(&f.Text, f.Name, "", what+": JSON, @FILE, or - for standard input")
}

// maxInput is the most that servers take if nothing else is said, and stops a pipe without end.
const maxInput = 64 << 20

// readMost reads one byte more than is allowed, so that it can be refused.
func readMost(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, maxInput+1)) }

// Read returns the payload; nil if the flag was not given.
func (f *InputFlag) Read(cmd *cobra.Command, stdin io.Reader) (schemas.Payload, error) {
	if !cmd.Flags().Changed(f.Name) {
		return nil, nil
	}
	var body []byte
	var err error
	from := "--" + f.Name
	switch {
	case f.Text == "-":
		from += " - (standard input)"
		body, err = readMost(stdin)
	case strings.HasPrefix(f.Text, "@"):
		from += " " + f.Text
		var file *os.File
		if file, err = os.Open(f.Text[1:]); err == nil {
			body, err = readMost(file)
			file.Close()
		}
	default:
		body = []byte(f.Text)
	}
	switch {
	case err != nil:
		return nil, Usage(cmd, fmt.Errorf("%s: %w", from, err))
	case len(body) > maxInput:
		return nil, Usage(cmd, fmt.Errorf("%s has more than %s", from, Size(maxInput)))
	case f.raw:
		return body, nil
	}
	if err := checkJSON(body); err != nil {
		way := ""
		if cmd.Flags().Lookup("raw") != nil && f.Name != SignalInput {
			way = ", or add --raw to send the bytes as they are"
		}
		return nil, Usage(cmd,
			fmt.Errorf(`%s is not JSON: %w; write text as '"text"'%s`, from, err, way))
	}
	return bytes.TrimSpace(body), nil
}

// mayBeEmpty are the flags in which no word is a word of its own: no context, no reason, every
// prefix, or a payload, which is judged as one.
var mayBeEmpty = []string{"context", "reason", "note", "prefix", "input", SignalInput, "details"}

// refuseEmpty refuses flags that are given without a word in them, such as that of a variable that
// is not set: they would mean all that leaving them out does, such as every workflow, the namespace
// "default", or a store in memory.
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

// RefuseTimeout is for commands that have no end of their own.
func RefuseTimeout(cmd *cobra.Command) error {
	return RefuseFlags(cmd, []string{"timeout"},
		fmt.Sprintf("but %s goes on until it is stopped: leave it out", cmd.Name()))
}

// RefuseFlags refuses flags that say nothing here, and says why.
func RefuseFlags(cmd *cobra.Command, names []string, why string) error {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return Usage(cmd, fmt.Errorf("--%s is given, %s", name, why))
		}
	}
	return nil
}

// ArgNames demands exactly these arguments and says which one is missing or too much.
func ArgNames(names ...string) cobra.PositionalArgs {
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

// Filled is ArgNames for arguments that nothing stands for if they are empty, such as by a variable
// that is not set.
func Filled(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := ArgNames(names...)(cmd, args); err != nil {
			return err
		}
		if i := slices.Index(args, ""); i >= 0 {
			return fmt.Errorf("%s is empty", names[i])
		}
		return nil
	}
}

// AttributesFlag takes NAME=VALUE, once for each time that it is given. The map of the flag library
// reads a line of CSV, so that a value with a comma and a = would be two attributes, and one with
// quotes would lose them.
type AttributesFlag struct{ To *map[string]string }

var _ pflag.Value = AttributesFlag{}

// Set implements [pflag.Value].
func (f AttributesFlag) Set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return errors.New("want NAME=VALUE")
	}
	if *f.To == nil {
		*f.To = map[string]string{}
	}
	(*f.To)[name] = value
	return nil
}

// String implements [pflag.Value].
func (f AttributesFlag) String() string { return "" }

// Type implements [pflag.Value].
func (f AttributesFlag) Type() string { return "name=value" }

// TimeFlag is an instant on the command line: 2026-01-02T03:04:05Z, 2026-01-02 (in UTC), or 90m for
// that long ago.
type TimeFlag struct{ Value time.Time }

var _ pflag.Value = (*TimeFlag)(nil)

// Set implements [pflag.Value].
func (t *TimeFlag) Set(s string) error {
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", time.DateTime, time.DateOnly,
	} {
		if v, err := time.Parse(layout, s); err == nil {
			t.Value = v
			return nil
		}
	}
	var ago DurationFlag
	if strings.ContainsAny(s, "hms") && ago.Set(s) == nil {
		t.Value = time.Now().Add(-ago.Value)
		return nil
	}
	return fmt.Errorf(
		"want a time such as 2026-01-02T03:04:05Z, a day such as 2026-01-02, or 90m for that long ago")
}

// String implements [pflag.Value].
func (t *TimeFlag) String() string {
	if t.Value.IsZero() {
		return ""
	}
	return t.Value.UTC().Format(time.RFC3339Nano)
}

// Type implements [pflag.Value].
func (t *TimeFlag) Type() string { return "time" }

// RunFlag adds --run.
func RunFlag(cmd *cobra.Command, runID *string) {
	cmd.Flags().StringVar(runID, "run", "", "the run id (default the open run, or else the latest)")
}

// ParseInterval reads a distance, and after a plus its offset: 24h+3h.
func ParseInterval(s string) (ops.ScheduleInterval, error) {
	every, offset, some := strings.Cut(s, "+")
	d, plus := DurationFlag{Some: true}, DurationFlag{}
	if d.Set(strings.TrimSpace(every)) != nil ||
		some && plus.Set(strings.TrimSpace(offset)) != nil {
		return ops.ScheduleInterval{}, errors.New(
			"want a distance such as 5m, or one with an offset, such as 24h+3h",
		)
	}
	return ops.ScheduleInterval{
		Every: schemas.Duration(d.Value), Offset: schemas.Duration(plus.Value),
	}, nil
}

// SignalInput is the flag of the payload that a start hands over with its signal.
const SignalInput = "signal-input"

// ParseChildPolicy reads --child-policy.
func ParseChildPolicy(cmd *cobra.Command, s string) (schemas.ChildPolicy, error) {
	switch s {
	case "":
		return "", nil
	case "terminate":
		return schemas.ChildTerminate, nil
	case "cancel":
		return schemas.ChildRequestCancel, nil
	case "abandon":
		return schemas.ChildAbandon, nil
	default:
		return "", Usage(cmd,
			fmt.Errorf("--child-policy is %q: use terminate, cancel or abandon", s))
	}
}
