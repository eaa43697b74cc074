package stats

import (
	"reflect"
	"sync"
	"time"

	"github.com/droverhq/drover/schemas"
)

// mostOpen bounds the requests that are remembered: more than that at once are not measured.
const mostOpen = 10_000

// longest is after how long a request is forgotten that nobody answers.
const longest = 2 * time.Minute

// Requests are those that are to be answered by this process, by the subject of the answer.
type Requests struct {
	mu    sync.Mutex
	open  map[string]request
	swept time.Time
}

type request struct {
	verb string
	at   time.Time
}

// Asked notes a request, unless it is noted already.
func (s *Stats) Asked(reply, verb string) {
	if s == nil || reply == "" {
		return
	}
	q, now := &s.open, time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open == nil {
		q.open = map[string]request{}
	}
	if len(q.open) >= mostOpen && now.Sub(q.swept) > time.Second {
		q.swept = now
		for to, r := range q.open {
			if now.Sub(r.at) > longest {
				delete(q.open, to)
			}
		}
	}
	if _, known := q.open[reply]; !known && len(q.open) < mostOpen {
		q.open[reply] = request{verb: verb, at: now}
	}
}

// Passed forgets a request that somebody else answers.
func (s *Stats) Passed(reply string) {
	if s == nil || reply == "" {
		return
	}
	s.open.take(reply)
}

// Answered counts the answer to a request that was noted.
func (s *Stats) Answered(reply string, answer any) {
	if s == nil || reply == "" {
		return
	}
	r, ok := s.open.take(reply)
	if !ok {
		return
	}
	s.Requests.Of(VerbCode{r.verb, codeOf(answer)}).Add(1)
	s.Answers.Of(r.verb).Observe(time.Since(r.at))
}

func (q *Requests) take(reply string) (request, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r, ok := q.open[reply]
	delete(q.open, reply)
	return r, ok
}

// codeOf is the code of an answer's error, "ok" without one. Each answer that can refuse has a
// field Error.
func codeOf(answer any) string {
	v := reflect.Indirect(reflect.ValueOf(answer))
	if v.Kind() != reflect.Struct {
		return "ok"
	}
	f := v.FieldByName("Error")
	if !f.IsValid() {
		return "ok"
	}
	if e, ok := f.Interface().(*schemas.Error); ok && e != nil {
		return string(e.Code)
	}
	return "ok"
}
