package calendar

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/droverhq/drover/schemas"
)

// part is one of the fields of a cron expression.
type part struct {
	name     string
	min, max int
	names    []string // of min and on
	cycle    int      // not 0: ranges may go over the end, SAT-MON
}

var (
	seconds     = part{name: "second", max: 59}
	minutes     = part{name: "minute", max: 59}
	hours       = part{name: "hour", max: 23}
	daysOfMonth = part{name: "day of month", min: 1, max: 31}
	months      = part{
		name: "month", min: 1, max: 12, cycle: 12,
		names: []string{
			"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
		},
	}
	daysOfWeek = part{ // 7 is Sunday as well
		name: "day of week", max: 7, cycle: 7,
		names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"},
	}
	years = part{name: "year", min: firstYear, max: lastYear}
)

func (p *part) any(text string) bool { return text == "*" || text == "?" }

// each calls do for every value of text, which is a list of values, ranges and steps. special
// takes the items that only this part knows.
func (p *part) each(
	text string, special func(item string) (known bool, err *schemas.Error), do func(value int),
) *schemas.Error {
	for item := range strings.SplitSeq(text, ",") {
		if special != nil {
			known, err := special(strings.ToUpper(item))
			if err != nil {
				return err
			}
			if known {
				continue
			}
		}
		if err := p.item(item, do); err != nil {
			return err
		}
	}
	return nil
}

// item reads 5, MON, 1-5, FRI-MON, */2, 1-10/3, 10/15.
func (p *part) item(item string, do func(value int)) *schemas.Error {
	span, stepText, stepped := strings.Cut(item, "/")
	step := 1
	if stepped {
		var err error
		if step, err = strconv.Atoi(stepText); err != nil || step < 1 {
			return p.wrong(item, "%q is no step", stepText).
				WithHint("a step is a whole number from 1 on: */5")
		}
	}
	low, high, err := p.span(span, stepped)
	if err != nil {
		return err
	}
	if stepped && step > max(1, high-low) {
		return p.wrong(item, "a step of %d leads out of %d-%d", step, low, high).
			WithHint("for times at a distance that does not divide an hour or a day use every, " +
				"such as 90m; for one value write it without a step")
	}
	for v := low; v <= high; v += step {
		if p.cycle != 0 {
			do(p.min + (v-p.min)%p.cycle)
		} else {
			do(v)
		}
	}
	return nil
}

// span returns the first and the last value of an item without its step. In a part with a cycle
// the last one may be beyond max.
func (p *part) span(span string, stepped bool) (low, high int, err *schemas.Error) {
	if p.any(span) {
		return p.min, p.lastOf(), nil
	}
	first, last, ranged := strings.Cut(span, "-")
	if low, err = p.value(span, first); err != nil {
		return 0, 0, err
	}
	switch {
	case ranged:
		if high, err = p.value(span, last); err != nil {
			return 0, 0, err
		}
	case stepped:
		return low, max(low, p.lastOf()), nil
	default:
		return low, low, nil
	}
	if high < low {
		if p.cycle == 0 {
			return 0, 0, p.wrong(span, "a range goes up").
				WithHint("write two: %s-%d,%d-%s", first, p.max, p.min, last)
		}
		high += p.cycle
	}
	return low, high, nil
}

// lastOf is the last value that is not another name of the first one.
func (p *part) lastOf() int {
	if p.cycle != 0 {
		return p.min + p.cycle - 1
	}
	return p.max
}

func (p *part) value(item, text string) (int, *schemas.Error) {
	for i, name := range p.names {
		if strings.EqualFold(name, text) {
			return p.min + i, nil
		}
	}
	n, err := strconv.Atoi(text)
	switch {
	case text == "" || err != nil || strings.TrimLeft(text, "0123456789") != "":
		return 0, p.wrong(item, "%q is no %s", text, p.name).WithHint("%s", p.usage())
	case n < p.min || n > p.max:
		return 0, p.wrong(item, "%d is not from %d to %d", n, p.min, p.max).
			WithHint("%s", p.usage())
	}
	return n, nil
}

func (p *part) usage() string {
	values := fmt.Sprintf("%d to %d", p.min, p.max)
	if p.names != nil {
		values += fmt.Sprintf(" or %s to %s", p.names[0], p.names[len(p.names)-1])
	}
	usage := fmt.Sprintf("a %s is %s, in lists (a,b), ranges (a-b) and steps (*/n), or * for any",
		p.name, values)
	switch p.name {
	case daysOfMonth.name:
		usage += "; L is the last day, L-3 the last but three, 15W the weekday nearest to the 15th, LW the last weekday"
	case daysOfWeek.name:
		usage += "; FRI#2 is the second Friday of a month, FRIL the last"
	}
	return usage
}

func (p *part) wrong(item, format string, args ...any) *schemas.Error {
	return schemas.Errorf(schemas.CodeInvalid, "%s %q: %s", p.name, item,
		fmt.Sprintf(format, args...))
}
