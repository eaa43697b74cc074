package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
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
		return err
	}
	if v == schemas.Unlimited && !d.unlimited {
		return fmt.Errorf("NONE is not possible here: leave the flag out, or give a time such as 90s")
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

// inputFlag is what --input and --raw say.
type inputFlag struct {
	text string
	raw  bool
}

func (f *inputFlag) register(cmd *cobra.Command, what string) {
	cmd.Flags().StringVar(&f.text, "input", "", what+": JSON, @FILE, or - for standard input")
	cmd.Flags().BoolVar(&f.raw, "raw", false, "take the input's bytes as they are; it need not be JSON")
}

// maxInput is far above what any server takes, and stops a pipe without end.
const maxInput = 64 << 20

// read returns the payload; nil if the flag was not given.
func (f *inputFlag) read(cmd *cobra.Command, stdin io.Reader) (schemas.Payload, error) {
	if !cmd.Flags().Changed("input") {
		return nil, nil
	}
	var body []byte
	var err error
	from := "--input"
	switch {
	case f.text == "-":
		from = "--input - (standard input)"
		body, err = io.ReadAll(io.LimitReader(stdin, maxInput+1))
	case strings.HasPrefix(f.text, "@"):
		from = "--input " + f.text
		body, err = os.ReadFile(f.text[1:])
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
	body = bytes.TrimSpace(body)
	if err := json.Unmarshal(body, new(any)); err != nil {
		return nil, usage(cmd, fmt.Errorf(`%s is not JSON: %w; write text as '"text"', or add --raw to send the bytes as they are`, from, err))
	}
	return body, nil
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
