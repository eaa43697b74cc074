// Package backoff judges retries of a flow: how long to wait before the next one, and whether there
// may be one.
//
//	1s 5s increasing 2x up to 5m jitter 10%     a [Backoff]: the delay before each retry
//	10   1h   2 in 1m                           a [Limit]: how many retries, for how long, how many within how long
//
// Invariants: the k-th delay is a function of k and one random number, which the caller brings; a
// delay is never negative and never longer than [Longest], nor than "up to" if it is given, jitter
// included; what is remembered of the retries of a run, [Records], does not grow with their number.
// The package is pure: the caller passes the time.
//
// The words of a backoff may come in any order after the first durations, and "max" means "up to".
// A duration in it is one word, so "1m 30s" is two: one minute before the first retry, thirty
// seconds before the others. Write 1m30s for the sum.
package backoff

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/internal/duration"
)

// Longest is the longest delay. It keeps the sum of an instant and a delay within what time.Time
// can do.
const Longest = 10 * 365 * 24 * time.Hour

// Bounds of what an author may write.
const (
	maxInitial = 100
	maxFactor  = 1e6
)

const what = "backoff"

// Backoff says how long to wait before each retry. The zero value means no delay.
type Backoff struct {
	Initial []time.Duration // before the first retries; the last one is what grows
	Factor  float64         // multiplies the last initial delay again and again; 0 is 1
	Step    time.Duration   // is added to it again and again; at most one of Factor and Step is set
	Jitter  float64         // at least -1: a delay is multiplied by 1 + a random number * Jitter
	Max     time.Duration   // 0 is Longest
}

// Parse reads a backoff: one or more durations, then in any order "increasing" with a factor (2x),
// a percentage (50%) or a duration (10s), "up to" or "max" with a duration, and "jitter" with a
// factor (0.1) or a percentage (10%). Errors are of type *syntax.Error.
func Parse(text string) (*Backoff, error) {
	words, err := syntax.Words(what, text)
	if err != nil {
		return nil, err
	}
	p := parser{text: text, words: words, seen: map[string]bool{}}
	b := &Backoff{}
	for p.more() && !isKeyword(p.peek()) {
		if len(b.Initial) > 0 &&
			!strings.ContainsAny(p.peek()[:min(1, len(p.peek()))], "0123456789.-+") {
			return nil, p.stranger()
		}
		if len(b.Initial) == maxInitial {
			return nil, p.problem("there are too many delays",
				"at most "+strconv.Itoa(maxInitial)+" can be listed")
		}
		d, err := p.delay()
		if err != nil {
			return nil, err
		}
		b.Initial = append(b.Initial, d)
	}
	if len(b.Initial) == 0 {
		return nil, p.problem("a delay is missing", "begin with one, such as 1s increasing 2x")
	}
	for p.more() {
		if err := p.option(b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Delay is the time to wait before the retry that has k retries before it. random is in [0,1).
//
// A delay that reaches Max with a positive Jitter is Max divided by 1 + random*Jitter, so that
// retries which all reached it are still spread. With a negative Jitter that would be more than
// Max, so it is Max.
func (b *Backoff) Delay(k int, random float64) time.Duration {
	if b == nil || len(b.Initial) == 0 {
		return 0
	}
	k = max(k, 0)
	limit := b.Max
	if limit <= 0 || limit > Longest {
		limit = Longest
	}
	if b.plain(k) { // without floats, so that nothing is rounded
		return min(b.Initial[min(k, len(b.Initial)-1)], limit)
	}
	d := float64(b.Initial[min(k, len(b.Initial)-1)])
	if e := float64(1 + k - len(b.Initial)); e > 0 {
		if b.Factor > 0 {
			d *= math.Pow(b.Factor, e)
		}
		d += e * float64(b.Step)
	}
	spread := 1 + random*b.Jitter
	d *= spread
	if !(d > float64(limit)) { // so that 0 times infinity is 0
		return max(time.Duration(d), 0)
	}
	if spread > 1 { // those who reached the limit are spread below it
		return time.Duration(float64(limit) / spread)
	}
	return limit
}

func (b *Backoff) plain(k int) bool {
	grows := k >= len(b.Initial) && (b.Factor != 0 && b.Factor != 1 || b.Step != 0)
	return b.Jitter == 0 && !grows
}

// String writes the backoff so that Parse reads the same one.
func (b *Backoff) String() string {
	var parts []string
	for _, d := range b.Initial {
		parts = append(parts, duration.String(d))
	}
	if b.Factor != 0 {
		parts = append(parts, "increasing", plain(b.Factor)+"x")
	}
	if b.Step != 0 {
		parts = append(parts, "increasing", duration.String(b.Step))
	}
	if b.Max != 0 {
		parts = append(parts, "up to", duration.String(b.Max))
	}
	if b.Jitter != 0 {
		parts = append(parts, "jitter", plain(b.Jitter))
	}
	return strings.Join(parts, " ")
}

func plain(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

type parser struct {
	text  string
	words []syntax.Word
	at    int
	seen  map[string]bool
}

func (p *parser) more() bool { return p.at < len(p.words) }

func (p *parser) peek() string { return p.words[p.at].Text }

func isKeyword(s string) bool {
	switch s {
	case "increasing", "up", "to", "max", "jitter":
		return true
	}
	return false
}

// problem is about the word that is next, or the end.
func (p *parser) problem(problem, hint string) error {
	offset := len(p.text)
	if p.more() {
		offset = p.words[p.at].Start
	}
	return syntax.New(what, p.text, offset, problem, hint)
}

func (p *parser) stranger() error {
	return p.problem(syntax.Quote(p.peek())+" does not belong here",
		"after the delays come increasing, up to (or max) and jitter, each at most once; a "+
			"limit of a retry stands before its backoff")
}

func (p *parser) delay() (time.Duration, error) {
	d, err := duration.Parse(p.peek())
	if err != nil {
		return 0, syntax.Within(what, p.text, p.words[p.at].Start, err)
	}
	if d > Longest {
		return 0, p.problem("the delay is too long", "the longest is ten years")
	}
	p.at++
	return d, nil
}

// option reads a keyword and what belongs to it.
func (p *parser) option(b *Backoff) error {
	name, start := p.peek(), p.at
	if name == "up" && p.at+1 < len(p.words) && p.words[p.at+1].Text == "to" {
		name = "max"
		p.at++
	}
	if name == "up" || !isKeyword(name) || name == "to" {
		p.at = start
		return p.stranger()
	}
	if p.seen[name] {
		p.at = start
		return p.problem(syntax.Quote(name)+" occurs twice", "write it once")
	}
	p.seen[name] = true
	if p.at++; !p.more() {
		return p.problem("the value of "+name+" is missing",
			"write, for example, increasing 2x up to 5m jitter 10%")
	}
	switch name {
	case "increasing":
		return p.increasing(b)
	case "jitter":
		return p.jitter(b)
	}
	d, err := p.delay()
	if err == nil && d == 0 {
		p.at--
		return p.problem("a limit of zero would mean none",
			"leave the backoff out if there is to be no delay")
	}
	b.Max = d
	return err
}

func (p *parser) increasing(b *Backoff) error {
	word := p.peek()
	if number, ok := strings.CutSuffix(word, "x"); ok {
		f, err := parseNumber(number)
		if err != nil || f <= 0 || f > maxFactor {
			return p.problem(syntax.Quote(word)+" is no factor",
				"write a number above 0 with an x, such as 2x")
		}
		b.Factor = f
		p.at++
		return nil
	}
	if number, ok := strings.CutSuffix(word, "%"); ok {
		f, err := parseNumber(number)
		if err != nil || f <= -100 || f/100 > maxFactor {
			return p.problem(syntax.Quote(word)+" is no percentage",
				"write a number above -100 with a %, such as 50%")
		}
		b.Factor = 1 + f/100
		p.at++
		return nil
	}
	if _, err := parseNumber(word); err == nil {
		return p.problem(syntax.Quote(word)+" has no unit",
			"write a factor (2x), a percentage (50%) or a duration (10s)")
	}
	d, err := p.delay()
	b.Step = d
	return err
}

func (p *parser) jitter(b *Backoff) error {
	word := p.peek()
	number, percent := strings.CutSuffix(word, "%")
	f, err := parseNumber(number)
	if percent {
		f /= 100
	}
	if err != nil || f < -1 || f > maxFactor {
		return p.problem(syntax.Quote(word)+" is no jitter",
			"write a factor (0.1) or a percentage (10%), at least -100%")
	}
	b.Jitter = f
	p.at++
	return nil
}

// parseNumber reads a decimal number without exponent, infinity or hexadecimal digits.
func parseNumber(s string) (float64, error) {
	if strings.Trim(s, "0123456789.-") != "" {
		return 0, fmt.Errorf("%s is no number", syntax.Quote(s))
	}
	return strconv.ParseFloat(s, 64)
}
