package cutwire

import (
	"slices"
	"strings"
	"sync"
)

// Questions loses one thing that a client asks, however often it asks: by a client that tries again
// an answer that is lost once is hardly missed. It judges what its wire sends from [Ask] on.
//
// Of what a reader asks its consumer it knows nothing. Consumers have a new name each time, so that
// a question is never the same.
type Questions struct {
	mu    sync.Mutex
	begin []string
	how   Verdict
	nth   int      // which is lost; -1 if none is
	asked []string // each once
	lost  string
}

// Ask judges what w sends to subjects that begin with one of begin: the question that is lost by
// [Questions.Without] fares as how says.
func Ask(w *Wire, how Verdict, begin ...string) *Questions {
	q := &Questions{begin: begin, how: how, nth: -1}
	w.Judge(q.judge)
	return q
}

func (q *Questions) judge(subject string, body []byte) Verdict {
	if !slices.ContainsFunc(q.begin, func(s string) bool { return strings.HasPrefix(subject, s) }) {
		return Pass
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	question := subject + " " + string(body)
	at := slices.Index(q.asked, question)
	if at < 0 {
		at = len(q.asked)
		q.asked = append(q.asked, question)
	}
	if at != q.nth {
		return Pass
	}
	q.lost = question
	return q.how
}

// Without does something while the nth question it asks is lost, counted from 0, and returns that
// question; "" if it asked fewer.
func (q *Questions) Without(nth int, do func()) (lost string) {
	q.set(nth)
	do()
	return q.set(-1)
}

func (q *Questions) set(nth int) (lost string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	lost = q.lost
	q.asked, q.lost, q.nth = nil, "", nth
	return lost
}
