package retention

import (
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/ops/spans"
	"github.com/droverhq/drover/schemas"
)

// What is told is taken in its order, from where the reader has come to, and no more is kept of it than may be.
func TestTold(t *testing.T) {
	type op struct {
		add  [2]uint64 // a span with as many runs as it has records; else it is taken
		next uint64
		want string // of the span that is taken
	}
	add := func(from, to uint64) op { return op{add: [2]uint64{from, to}} }
	take := func(next uint64, want string) op { return op{next: next, want: want} }
	for name, ops := range map[string][]op{
		"nothing":                   {take(1, "0-0 false")},
		"as told":                   {add(2, 5), take(2, "2-5 true"), take(6, "0-0 false")},
		"after a gap":               {add(2, 5), take(1, "2-5 false"), take(2, "2-5 true")},
		"half of it was read":       {add(2, 5), take(4, "2-5 true")},
		"it was read":               {add(2, 5), take(6, "0-0 false")},
		"small ones are one":        {add(2, 5), add(6, 9), take(2, "2-9 true")},
		"large ones are not":        {add(2, 1000), add(1001, 1100), take(2, "2-1000 true"), take(1001, "1001-1100 true")},
		"with a gap between":        {add(2, 5), add(8, 9), take(2, "2-5 true"), take(6, "8-9 false"), take(8, "8-9 true")},
		"the stream lost its end":   {add(2, 5), add(6, 9), add(20, 29), add(5, 7), take(2, "5-7 false"), take(6, "5-7 true"), take(8, "0-0 false")},
		"it lost its last record":   {add(2, 5), add(5, 7), take(2, "5-7 false"), take(5, "5-7 true")},
		"too much":                  {add(1, maxClosed), add(maxClosed+1, maxClosed+1), take(1, fmt.Sprintf("%[1]d-%[1]d false", maxClosed+1))},
		"more than may ever be":     {add(1, maxClosed+1), take(1, "0-0 false"), add(maxClosed+2, maxClosed+3), take(maxClosed+2, fmt.Sprintf("%d-%d true", maxClosed+2, maxClosed+3))},
		"what was dropped is spent": {add(1, maxClosed), take(maxClosed+1, "0-0 false"), add(maxClosed+1, 2*maxClosed), take(maxClosed+1, fmt.Sprintf("%d-%d true", maxClosed+1, 2*maxClosed))},
	} {
		t.Run(name, func(t *testing.T) {
			told := spans.NewQueue(maxClosed)
			told.Listen(true)
			for i, o := range ops {
				if from, to := o.add[0], o.add[1]; from > 0 {
					told.Add(3, spans.Span{From: from, To: to, Changed: make([]broker.Change, to-from+1)})
					continue
				}
				s, whole := told.Take(3, o.next)
				if got := fmt.Sprintf("%d-%d %v", s.From, s.To, whole); got != o.want {
					t.Fatalf("%d: got %s, want %s", i, got, o.want)
				}
			}
			if s, whole := told.Take(2, 1); whole || s.From != 0 {
				t.Errorf("another partition has %+v", s)
			}
		})
	}
}

// Who does not look after the namespace remembers nothing, and whoever begins to starts with nothing.
func TestToldToNobody(t *testing.T) {
	j := &Janitor{follower: &spans.Follower{Queue: spans.NewQueue(maxClosed)}, many: make(chan struct{}, 1)}
	tell := func() { j.Changed(0, 1, 1, closedRuns(manyClosed)) }
	heard := func() (runs, words int) {
		s, _ := j.follower.Queue.Take(0, 1)
		select {
		case <-j.many:
			words = 1
		default:
		}
		return len(s.Changed), words
	}
	tell()
	if runs, words := heard(); runs != 0 || words != 0 {
		t.Errorf("got %d runs and %d words of it, want none kept", runs, words)
	}
	j.follower.Queue.Listen(true)
	tell()
	if runs, words := heard(); runs != manyClosed || words != 1 {
		t.Errorf("got %d runs, and %d words of it, want %d and 1", runs, words, manyClosed)
	}
	tell()
	j.follower.Queue.Listen(false)
	if runs, _ := heard(); runs != 0 {
		t.Errorf("got %d runs, want none kept", runs)
	}
}

// closedRuns are so many changes that the janitor cares for.
func closedRuns(n int) []broker.Change {
	all := make([]broker.Change, n)
	for i := range all {
		all[i].Line.Status = schemas.StatusCompleted
	}
	return all
}

// Runs of a partition have closed in the order of their records, whoever says when: a chain is purged from its beginning.
func TestClosesAreInOrder(t *testing.T) {
	j := &Janitor{latest: make([]int64, 2)}
	at := time.Unix(1000, 0)
	read := j.entryOf(0, 5, at, "a")
	told := j.entryOf(0, 6, at.Add(-time.Second), "b")
	other := j.entryOf(1, 7, at.Add(-time.Second), "c")
	if read.compare(told) >= 0 || other.compare(read) >= 0 || told.id == read.id {
		t.Errorf("got %+v, %+v, and in another partition %+v; want them in the order of their records, and the last before both", read, told, other)
	}
}
