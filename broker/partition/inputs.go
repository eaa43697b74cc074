package partition

import (
	"sync"

	"github.com/droverhq/drover/broker/natsconn"
)

// inputs are what the owner hears and reads.
type inputs struct {
	readers       []*natsconn.Reader      // of the logs
	subscriptions []natsconn.Subscription // to what may be left unheard while the owner changes
	requests      requests
	replies       string // prefix of the subjects that deciders answer to
}

// requests are those that were received and not answered. They are kept by their reply subject.
type requests struct {
	mu    sync.Mutex
	open  map[string]natsconn.Msg
	taken bool
}

// add enters a request. It reports false once they were taken: the partition is another's.
func (q *requests) add(m natsconn.Msg) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken {
		return false
	}
	if q.open == nil {
		q.open = make(map[string]natsconn.Msg)
	}
	if m.Reply != "" {
		q.open[m.Reply] = m
	}
	return true
}

func (q *requests) done(reply string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, reply)
}

func (q *requests) none() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.open) == 0
}

func (q *requests) take() map[string]natsconn.Msg {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.open
	q.open, q.taken = nil, true
	return all
}
