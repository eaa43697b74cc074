package concurrency_test

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/droverhq/drover/decider/flow/concurrency"
	"github.com/droverhq/drover/decider/flow/syntax"
	"pgregory.net/rapid"
)

func TestAt(t *testing.T) {
	const fails = 0
	for _, tc := range []struct {
		text string
		n    int
		want int
	}{
		{"1", 10, 1},
		{"5", 3, 5},
		{"all", 7, 7},
		{"unlimited", 7, 7},
		{"ALL", 7, 7},
		{"50%", 10, 5},
		{"33%", 10, 3},
		{"33.3333%", 3, fails},
		{"33.3334%", 3, 1},
		{"100%", 1, 1},
		{"10%", 3, fails},
		{"50% + 50%", 3, 3}, // the fractions are dropped at the end
		{"50%+1", 10, 6},
		{"all - 10", 30, 20},
		{"all-10", 10, fails},
		{"50% - 1", 10, 4},
		{"10 - 3 - 2", 1, 5},
		{"-10", 30, 20},
		{"-10", 10, fails},
		{"-10", 5, fails},
		{"-10%", 20, 18},
		{"- 10", 30, 20},
		{"0", 10, fails},
		{"0%", 10, fails},
		{"1 - 2", 10, fails},
		{"min(5, 33%)", 9, 2},
		{"min(5, 33%)", 90, 5},
		{"max(1, -10)", 10, 1},
		{"max(1, -10)", 30, 20},
		{"max(1, min(50%, -10))", 40, 20},
		{"max(1, min(50%, -10))", 15, 5},
		{"max(1, min(50%, -10))", 3, 1},
		{"max(1,2,3)", 9, 3},
		{"max(4)", 9, 4},
		{"max(1, 2) + min(3, 4)", 9, 5},
		{" max ( 1 ,  50 % ) ", 9, 4},
		{"--3", 10, 3},
		{"-all", 10, fails},
		{"1000000", 1, 1000000},
	} {
		e, err := concurrency.Parse(tc.text)
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		got, err := e.At(tc.n)
		if tc.want == fails {
			if err == nil || !strings.Contains(err.Error(), "want at least 1") {
				t.Errorf("%s of %d: got %d, %v, want an error", tc.text, tc.n, got, err)
			}
			continue
		}
		if err != nil || got != tc.want {
			t.Errorf("%s of %d: got %d, %v, want %d", tc.text, tc.n, got, err, tc.want)
		}
	}
}

func TestAtRefusesNumbersOfTargets(t *testing.T) {
	e, err := concurrency.Parse("all")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{-1, 0, concurrency.MaxTargets + 1} {
		if got, err := e.At(n); err == nil {
			t.Errorf("%d: got %d, want an error", n, got)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct {
		text   string
		offset int
		want   string
	}{
		{"", 0, "a part is missing"},
		{"  ", 2, "a part is missing"},
		{"some", 0, `"some" is no word`},
		{"5 targets", 2, "does not continue"},
		{"1.5", 0, "has no fraction"},
		{"1.%", 0, "up to four digits"},
		{".5%", 0, "up to four digits"},
		{"1.23456%", 0, "up to four digits"},
		{"1.2.3%", 0, "up to four digits"},
		{"1001%", 0, "larger than 1000"},
		{"1000001", 0, "larger than 1000000"},
		{"99999999999999999999", 0, "larger than"},
		{"5 +", 3, "a part is missing"},
		{"+ 5", 0, "is no number"},
		{"5 * 2", 2, "does not continue"},
		{"min", 3, "bracket after min or max"},
		{"min()", 4, "is no number"},
		{"min(1, )", 7, "is no number"},
		{"min(1", 5, "a comma or the closing bracket"},
		{"min(1 2)", 6, "a comma or the closing bracket"},
		{"min(1))", 6, "does not continue"},
		{strings.Repeat("min(", 40), 132, "too long"},
		{strings.Repeat("-", 40) + "1", 33, "too long"},
		{strings.Repeat("1+", 300) + "1", 400, "too long"},
	} {
		got, err := concurrency.Parse(tc.text)
		e, ok := errors.AsType[*syntax.Error](err)
		if !ok || e.Offset != tc.offset || !strings.Contains(err.Error(), tc.want) || e.Hint == "" {
			t.Errorf("%.40q: got %v, %v, want offset %d, %q and a hint", tc.text, got, err, tc.offset, tc.want)
		}
	}
}

// A dumb model: the same expression as exact fractions.
func TestAgainstFractions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, concurrency.MaxTargets).Draw(t, "n")
		text, want := generate(t, n, 3)
		e, err := concurrency.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		whole := new(big.Int).Div(want.Num(), want.Denom()) // rounds down, the denominator is above 0
		got, err := e.At(n)
		if whole.Sign() <= 0 {
			if err == nil {
				t.Fatalf("%s of %d: got %d, want an error for %s", text, n, got, whole)
			}
			return
		}
		if err != nil || int64(got) != whole.Int64() {
			t.Fatalf("%s of %d: got %d, %v, want %s", text, n, got, err, whole)
		}
	})
}

func generate(t *rapid.T, n, depth int) (string, *big.Rat) {
	choices := 3
	if depth > 0 {
		choices = 7
	}
	total := big.NewRat(int64(n), 1)
	switch rapid.IntRange(0, choices-1).Draw(t, "kind") {
	case 0:
		k := rapid.IntRange(0, 50).Draw(t, "number")
		return fmt.Sprint(k), big.NewRat(int64(k), 1)
	case 1:
		return "all", total
	case 2:
		p := rapid.IntRange(0, 2_000_000).Draw(t, "percent")
		return fmt.Sprintf("%d.%04d%%", p/10000, p%10000), new(big.Rat).Mul(big.NewRat(int64(p), 1_000_000), total)
	case 3:
		text, x := generate(t, n, 0)
		rest := new(big.Rat).Sub(total, x)
		if rest.Sign() < 0 {
			rest = new(big.Rat)
		}
		return "-" + text, rest
	case 4:
		a, x := generate(t, n, depth-1)
		b, y := generate(t, n, 0)
		if rapid.Bool().Draw(t, "plus") {
			return a + " + " + b, new(big.Rat).Add(x, y)
		}
		return a + " - " + b, new(big.Rat).Sub(x, y)
	}
	name, sign := "min", -1
	if rapid.Bool().Draw(t, "max") {
		name, sign = "max", 1
	}
	texts, best := []string{}, (*big.Rat)(nil)
	for range rapid.IntRange(1, 3).Draw(t, "parts") {
		text, x := generate(t, n, depth-1)
		texts = append(texts, text)
		if best == nil || x.Cmp(best) == sign {
			best = x
		}
	}
	return name + "(" + strings.Join(texts, ", ") + ")", best
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"max(1, min(50%, -10))", "all - 10", "50%+1", "-", "min(", "1.5%", "unlimited"} {
		f.Add(s, 10)
	}
	f.Fuzz(func(t *testing.T, text string, n int) {
		e, err := concurrency.Parse(text)
		if err != nil {
			if e, ok := errors.AsType[*syntax.Error](err); !ok || e.Offset > len(text) {
				t.Fatalf("%q: got %#v", text, err)
			}
			return
		}
		got, err := e.At(n)
		if err == nil && got < 1 {
			t.Fatalf("%q of %d: got %d", text, n, got)
		}
	})
}
