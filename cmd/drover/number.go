package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// plainly says of a flag that got no number, or one that is too large, what it wants. The flag library names a function of Go instead.
func plainly(err error) error {
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	number, ok := errors.AsType[*strconv.NumError](err)
	if !ok {
		return err
	}
	want := map[string]string{"bool": "true or false", "float64": "a number such as 1.5", "uint64": "a whole number from 0 on"}[bad.GetFlag().Value.Type()]
	if want == "" {
		want = "a whole number"
	}
	if errors.Is(number.Err, strconv.ErrRange) {
		return fmt.Errorf("--%s is %s, which is too large or too small: want %s", bad.GetFlag().Name, bad.GetValue(), want)
	}
	return fmt.Errorf("--%s is %q: want %s", bad.GetFlag().Name, bad.GetValue(), want)
}
