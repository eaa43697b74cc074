package expr

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/decider/flow/value"
	"github.com/droverhq/drover/internal/duration"
)

var errOverflow = errors.New("the result does not fit: integers have 64 bits")

// arithmetic computes + - * / %. Texts that are numbers, durations or instants count as such.
func arithmetic(op string, left, right any) (any, error) {
	a, err := operand(op, left)
	if err != nil {
		return nil, err
	}
	b, err := operand(op, right)
	if err != nil {
		return nil, err
	}
	var v any
	known := true
	switch x := a.(type) {
	case int64:
		v, known, err = integerWith(op, x, b)
	case float64:
		v, known, err = doubleWith(op, x, b)
	case time.Duration:
		v, known, err = durationWith(op, x, b)
	case time.Time:
		v, known, err = instantWith(op, x, b)
	}
	if !known {
		return nil, fmt.Errorf("%s %s %s cannot be computed: %s",
			describe(left), op, describe(right), quoteHint)
	}
	return v, err
}

// operand turns a text into what it computes as.
func operand(op string, v any) (any, error) {
	if n, ok := value.Numeric(v); ok {
		return n, nil
	}
	switch v := v.(type) {
	case time.Duration, time.Time:
		return v, nil
	case string:
		for _, name := range []string{"duration", "instant"} {
			if x, err := value.Coerce(v, name, value.Limits{}); err == nil {
				return x, nil
			}
		}
	}
	return nil, fmt.Errorf("%s is no number, so %s cannot compute with it: %s",
		describe(v), op, quoteHint)
}

func describe(v any) string {
	if text, err := value.Text(v); err == nil {
		return "the " + value.TypeName(v) + " " + syntax.Quote(text)
	}
	if v == nil {
		return "null"
	}
	return "a " + value.TypeName(v)
}

// The functions below return whether the types fit the operator.

func integerWith(op string, a int64, b any) (any, bool, error) {
	switch b := b.(type) {
	case int64:
		v, err := integers(op, a, b)
		return v, true, err
	case float64:
		return doubles(op, float64(a), b)
	case time.Duration:
		if op == "*" {
			v, err := scale(b, a)
			return v, true, err
		}
	}
	return nil, false, nil
}

func doubleWith(op string, a float64, b any) (any, bool, error) {
	switch b := b.(type) {
	case int64:
		return doubles(op, a, float64(b))
	case float64:
		return doubles(op, a, b)
	case time.Duration:
		if op == "*" {
			v, err := scale(b, a)
			return v, true, err
		}
	}
	return nil, false, nil
}

func durationWith(op string, a time.Duration, b any) (any, bool, error) {
	switch b := b.(type) {
	case time.Duration:
		if op == "+" || op == "-" {
			n, err := integers(op, int64(a), int64(b))
			if err != nil {
				return nil, true, errTooLong
			}
			v, err := length(n.(int64))
			return v, true, err
		}
	case time.Time:
		if op == "+" {
			v, err := moment(b.Add(a), b, a)
			return v, true, err
		}
	case int64, float64:
		switch op {
		case "*":
			v, err := scale(a, b)
			return v, true, err
		case "/":
			v, err := divide(a, b)
			return v, true, err
		}
	}
	return nil, false, nil
}

func instantWith(op string, a time.Time, b any) (any, bool, error) {
	switch b := b.(type) {
	case time.Duration:
		if op == "-" {
			b = -b
		}
		if op == "+" || op == "-" {
			v, err := moment(a.Add(b), a, b)
			return v, true, err
		}
	case time.Time:
		if op == "-" {
			d := a.Sub(b)
			if !b.Add(d).Equal(a) {
				return nil, true, errTooLong
			}
			v, err := length(int64(d))
			return v, true, err
		}
	}
	return nil, false, nil
}

var errTooLong = errors.New("the duration does not fit: the longest is about 106751 days")

// length refuses the two numbers that are no durations of a flow.
func length(n int64) (any, error) {
	if n == int64(duration.Forever) || n == math.MinInt64 {
		return nil, errTooLong
	}
	return time.Duration(n), nil
}

func moment(got, from time.Time, d time.Duration) (any, error) {
	if got.Year() < 0 || got.Year() > 9999 || got.Sub(from) != d {
		return nil, errors.New("the instant does not fit: years go from 0 to 9999")
	}
	return got, nil
}

func scale(d time.Duration, by any) (any, error) {
	if n, ok := by.(int64); ok {
		product, err := integers("*", int64(d), n)
		if err != nil {
			return nil, errTooLong
		}
		return length(product.(int64))
	}
	return rounded(float64(d) * by.(float64))
}

func divide(d time.Duration, by any) (any, error) {
	switch by := by.(type) {
	case int64:
		if by == 0 {
			return nil, errZero
		}
		if int64(d)%by == 0 {
			return length(int64(d) / by)
		}
		return rounded(float64(d) / float64(by))
	case float64:
		if by == 0 {
			return nil, errZero
		}
		return rounded(float64(d) / by)
	}
	return nil, errTooLong
}

func rounded(f float64) (any, error) {
	if f = math.Round(f); !(f > -1<<63 && f < 1<<63) {
		return nil, errTooLong
	}
	return length(int64(f))
}

var errZero = errors.New("a division by zero")

func integers(op string, a, b int64) (any, error) {
	switch op {
	case "+":
		if c := a + b; (c > a) == (b > 0) {
			return c, nil
		}
	case "-":
		if c := a - b; (c < a) == (b > 0) {
			return c, nil
		}
	case "*":
		if c, ok := multiply(a, b); ok {
			return c, nil
		}
	case "/":
		switch {
		case b == 0:
			return nil, errZero
		case a == math.MinInt64 && b == -1:
			return nil, errOverflow
		case a%b == 0:
			return a / b, nil
		}
		return float64(a) / float64(b), nil
	case "%":
		if b == 0 {
			return nil, errZero
		}
		if b == -1 { // the processor cannot do it for the smallest integer
			return int64(0), nil
		}
		return a % b, nil
	}
	return nil, errOverflow
}

func multiply(a, b int64) (int64, bool) {
	negative := (a < 0) != (b < 0)
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	switch {
	case high != 0:
		return 0, false
	case negative:
		return -int64(low), low <= 1<<63
	}
	return int64(low), low < 1<<63
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

func doubles(op string, a, b float64) (any, bool, error) {
	var c float64
	switch op {
	case "+":
		c = a + b
	case "-":
		c = a - b
	case "*":
		c = a * b
	case "/":
		if b == 0 {
			return nil, true, errZero
		}
		c = a / b
	default:
		return nil, true, errors.New("% is for integers only")
	}
	if math.IsInf(c, 0) || math.IsNaN(c) {
		return nil, true, errors.New("the result does not fit a double")
	}
	return c, true, nil
}
