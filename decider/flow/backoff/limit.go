package backoff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/internal/duration"
)

// MaxWindow is the largest N of a limit "N in D": so many times are remembered at most.
const MaxWindow = 1000

const whatLimit = "limit"

// Limit says when there may be no further retry.
type Limit struct {
	Count  int           // so many retries; 0 with Within set is no limit on the number
	Within time.Duration // with Counted: within the last Within. Without: since the first retry
	// Counted tells "0" (no retry at all) from a duration.
	Counted bool
}

// ParseLimit reads "N" (so many retries in all), "D" (none once D has passed since the first) or "N
// in D" (so many within the last D). Errors are of type *syntax.Error.
func ParseLimit(text string) (Limit, error) {
	words, err := syntax.Words(whatLimit, text)
	if err != nil {
		return Limit{}, err
	}
	refuse := func(offset int, problem string) (Limit, error) {
		return Limit{}, syntax.New(whatLimit, text, offset, problem,
			"write a number (10), a duration (1h) or both (2 in 1m)")
	}
	if len(words) == 0 {
		return refuse(0, "it is empty")
	}
	n, err := strconv.Atoi(words[0].Text)
	if err != nil || len(words) > 1 && words[1].Text != "in" {
		if strings.HasPrefix(words[0].Text, "-") {
			return refuse(words[0].Start, "it is negative")
		}
		d, err := duration.Parse(text)
		if err != nil {
			return Limit{}, syntax.Within(whatLimit, text, 0, err)
		}
		return Limit{Within: d}, nil
	}
	switch {
	case n < 0:
		return refuse(words[0].Start, "it is negative")
	case len(words) == 1:
		return Limit{Count: n, Counted: true}, nil
	case len(words) == 2:
		return refuse(len(text), "the duration after in is missing")
	case n > MaxWindow:
		return refuse(words[0].Start,
			fmt.Sprintf("at most %d retries can be counted within a duration", MaxWindow))
	}
	from := words[2].Start
	d, err := duration.Parse(text[from:])
	if err != nil {
		return Limit{}, syntax.Within(whatLimit, text, from, err)
	}
	if d == 0 {
		return refuse(from, "nothing happens within no time")
	}
	return Limit{Count: n, Within: d, Counted: true}, nil
}

// String writes the limit so that ParseLimit reads the same one.
func (l Limit) String() string {
	switch {
	case !l.Counted:
		return duration.String(l.Within)
	case l.Within == 0:
		return strconv.Itoa(l.Count)
	}
	return strconv.Itoa(l.Count) + " in " + duration.String(l.Within)
}

// Records is what a run remembers of its retries under one key. It is plain data: the state of the
// run keeps it.
type Records struct {
	Count  int         `json:"count"`            // retries so far
	First  time.Time   `json:"first,omitzero"`   // when the first one was
	Recent []time.Time `json:"recent,omitempty"` // the last ones, oldest first, at most MaxWindow
	// how many of them the limits need, the largest N of "N in D" that was seen
	Keep int `json:"keep,omitempty"`
}

// Add returns the records with one more retry at now. limits are those of the retry step; they say
// how many times are worth remembering. The records that were given stay as they were.
func (r Records) Add(now time.Time, limits []Limit) Records {
	r.Keep = r.need(limits)
	if r.Count == 0 {
		r.First = now
	}
	r.Count++
	r.Recent = append(slices.Clone(r.Recent), now)
	if extra := len(r.Recent) - r.Keep; extra > 0 {
		r.Recent = r.Recent[extra:]
	}
	return r
}

func (r Records) need(limits []Limit) int {
	n := max(r.Keep, 1)
	for _, l := range limits {
		if l.Counted && l.Within > 0 {
			n = max(n, l.Count)
		}
	}
	return min(n, MaxWindow)
}

// Reached returns the first limit that forbids another retry at now. A limit that is used for the
// first time with records that were made under smaller ones may be reached late: times that nobody
// needed are forgotten.
func (r Records) Reached(limits []Limit, now time.Time) (Limit, bool) {
	for _, l := range limits {
		if r.reaches(l, now) {
			return l, true
		}
	}
	return Limit{}, false
}

func (r Records) reaches(l Limit, now time.Time) bool {
	switch {
	case !l.Counted:
		return r.Count > 0 && now.Sub(r.First) >= l.Within
	case l.Within == 0:
		return r.Count >= l.Count
	}
	n := 0
	for _, t := range r.Recent {
		if now.Sub(t) <= l.Within {
			n++
		}
	}
	return n >= l.Count
}

// Expired reports whether the first retry is more than timeout ago, which is what the timeout of a
// retry step means. Zero is no timeout.
func (r Records) Expired(timeout time.Duration, now time.Time) bool {
	return timeout > 0 && r.Count > 0 && now.Sub(r.First) > timeout
}
