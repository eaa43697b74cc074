package cli

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// SizeFlag is a number of bytes on the command line: 1048576, 64MiB, 1GiB, or NONE for no limit
// where a command allows it.
type SizeFlag struct {
	Value     int64 // -1 stands for NONE
	Unlimited bool
}

var _ pflag.Value = (*SizeFlag)(nil)

var sizeUnits = []struct {
	name  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}}

// Set implements [pflag.Value].
func (f *SizeFlag) Set(s string) error {
	if s == "NONE" && f.Unlimited {
		f.Value = -1
		return nil
	}
	number, unit := s, int64(1)
	for _, u := range sizeUnits {
		if n, ok := strings.CutSuffix(s, u.name); ok {
			number, unit = strings.TrimSpace(n), u.bytes
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || n > 1<<62/unit {
		want := "want a number of bytes, or one with KiB, MiB, GiB or TiB, such as 64MiB"
		if f.Unlimited {
			want += ", or NONE"
		}
		return errors.New(want)
	}
	f.Value = n * unit
	return nil
}

// String implements [pflag.Value].
func (f *SizeFlag) String() string {
	switch {
	case f.Value < 0:
		return "NONE"
	case f.Value == 0:
		return ""
	default:
		return strconv.FormatInt(f.Value, 10)
	}
}

// Type implements [pflag.Value].
func (f *SizeFlag) Type() string { return "size" }
