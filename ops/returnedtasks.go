package ops

import "github.com/droverhq/drover/broker/natsconn"

// mostPause is how many sweeps at most the owner of a task that stands is not asked.
const mostPause = 32

// returnedTasks are tasks of a consumer that were handed back. A worker that has as many tasks as
// it takes waits for no more, so each sweep is given one of the backlog after it, and those of the
// sweeps before again. As long as nobody else was given such a task its owner says the same, and to
// ask takes two messages and a place in the inbox: it is asked less and less often.
type returnedTasks struct {
	most  int
	tasks map[uint64]returnedTask // by sequence
}

type returnedTask struct {
	delivered int // how often, when it was handed back
	pause     int // between two questions, in sweeps
	next      int // the sweep that asks
}

func newReturnedTasks(atOnce int) *returnedTasks {
	return &returnedTasks{most: 4 * atOnce, tasks: map[uint64]returnedTask{}}
}

// first notes a task that nobody was given before.
func (s *returnedTasks) first(t natsconn.Task, sweep int) {
	s.note(t, returnedTask{pause: 1, next: sweep + 1})
}

// still tells whether a task stands without asking.
func (s *returnedTasks) still(t natsconn.Task, sweep int) bool {
	was, ok := s.tasks[t.Seq]
	if !ok || t.Delivered != was.delivered+1 || sweep >= was.next {
		return false
	}
	s.note(t, was)
	return true
}

// said notes that the owner has said so.
func (s *returnedTasks) said(t natsconn.Task, sweep int) {
	pause := 1
	if was, ok := s.tasks[t.Seq]; ok && t.Delivered == was.delivered+1 {
		pause = min(2*was.pause, mostPause)
	}
	s.note(t, returnedTask{pause: pause, next: sweep + pause})
}

func (s *returnedTasks) note(t natsconn.Task, now returnedTask) {
	if len(s.tasks) >= s.most {
		clear(s.tasks) // those that are gone are not taken out one by one
	}
	now.delivered = t.Delivered
	s.tasks[t.Seq] = now
}
