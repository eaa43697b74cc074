package retention

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/droverhq/drover/internal/duration"
)

// Run is an ended run of a group.
type Run struct {
	ID     string
	Closed time.Time
	// Expirable is false while the run may still be needed, because it or a run above it is open or
	// can go on. Such a run is kept and does not count.
	Expirable bool
}

// Fate is what is to become of a run.
type Fate int

// The fates.
const (
	OnDisk Fate = iota + 1 // stays where it is
	Softly                 // is purged from disk; a cache may keep it
	Gone                   // is purged
)

func (f Fate) String() string {
	switch f {
	case OnDisk:
		return "on disk"
	case Softly:
		return "softly"
	case Gone:
		return "gone"
	}
	return "fate " + strconv.Itoa(int(f))
}

// Verdict is the judgement on one run.
type Verdict struct {
	ID   string
	Fate Fate
	// Until is the first moment at which time alone changes the fate; zero if it never does.
	Until time.Time
	// Why is a sentence for operators.
	Why string
}

// Keep judges the ended runs of one group. The verdicts are in the order of the runs. next is the
// first moment at which time alone changes a verdict; zero if it never does. Ids are unique. Ranks
// go by the time of close, latest first, then by id, highest first.
func Keep(p Policy, runs []Run, now time.Time) (verdicts []Verdict, next time.Time) {
	place := make(map[string]int, len(runs))
	count := 0
	for _, r := range latestFirst(runs) {
		if r.Expirable {
			place[r.ID] = count
			count++
		}
	}
	verdicts = make([]Verdict, 0, len(runs))
	for _, r := range runs {
		v := Verdict{
			ID: r.ID, Fate: OnDisk,
			Why: "Kept: it, or a run above it, is open or can still go on, so it does not count.",
		}
		if r.Expirable {
			v = p.Judge(r, place[r.ID], count, now)
		}
		if !v.Until.IsZero() && (next.IsZero() || v.Until.Before(next)) {
			next = v.Until
		}
		verdicts = append(verdicts, v)
	}
	return verdicts, next
}

func latestFirst(runs []Run) []Run {
	return slices.SortedFunc(slices.Values(runs), func(a, b Run) int {
		return cmp.Or(b.Closed.Compare(a.Closed), cmp.Compare(b.ID, a.ID))
	})
}

// Judge is the verdict on a run of a rank, 0 for the one that closed last, in a group of so many.
// [Keep] says the same of all.
func (p Policy) Judge(r Run, rank, count int, now time.Time) Verdict {
	who := fmt.Sprintf("It is the %s of %d in its group and closed %s ago",
		ordinal(rank+1), count, ago(now.Sub(r.Closed)))
	disk := p.Disk
	if p.Disabled {
		disk = Limit{}
	}
	if c, ok := disk.holds(r, rank, now); ok {
		return Verdict{ID: r.ID, Fate: OnDisk, Until: c.end(r), Why: "Kept: " + c.sentence(r, who)}
	}
	against := "beyond " + disk.String()
	if p.Disabled {
		against = "and its retention is disabled"
	}
	if c, ok := p.Soft.holds(r, rank, now); ok {
		return Verdict{
			ID: r.ID, Fate: Softly, Until: c.end(r),
			Why: "Purged from disk, " + against + ", but kept softly: " + c.sentence(r, who),
		}
	}
	return Verdict{ID: r.ID, Fate: Gone, Why: "Goes: " + who + ", " + against + "."}
}

// holds returns the corner that keeps the run for the longest time, if it is kept now.
func (l Limit) holds(r Run, rank int, now time.Time) (corner, bool) {
	c, ok := l.until(rank)
	return c, ok && (c.age == duration.Forever || now.Sub(r.Closed) <= c.age)
}

// end is the first moment at which the corner keeps the run no more.
func (c corner) end(r Run) time.Time {
	if c.age == duration.Forever {
		return time.Time{}
	}
	return r.Closed.Add(c.age + 1)
}

func (c corner) sentence(r Run, who string) string {
	s := who
	if c.count != unlimited {
		s += fmt.Sprintf(", within the last %d", c.count)
	}
	if c.age == duration.Forever {
		if c.count == unlimited {
			return s + "; all are kept for ever."
		}
		return s + "; it goes when newer ones push it out."
	}
	s += fmt.Sprintf(", within %s; it goes after %s",
		duration.String(c.age), r.Closed.Add(c.age).UTC().Format(time.RFC3339))
	if c.count != unlimited {
		s += ", or when newer ones push it out"
	}
	return s + "."
}

// ago is rounded for reading.
func ago(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d > time.Minute:
		d = d.Round(time.Second)
	default:
		d = d.Round(time.Millisecond)
	}
	return duration.String(d)
}

func ordinal(n int) string {
	suffix := "th"
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		suffix = "st"
	case n%10 == 2:
		suffix = "nd"
	case n%10 == 3:
		suffix = "rd"
	}
	if n == 1 {
		return "most recent"
	}
	return strconv.Itoa(n) + suffix + " most recent"
}
