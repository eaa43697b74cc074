package coroutine

import "slices"

// Waiters are the coroutines that wait for one thing. The zero value is empty.
type Waiters struct{ list []*Coroutine }

// Add adds a coroutine that is about to park.
func (w *Waiters) Add(c *Coroutine) { w.list = append(w.list, c) }

// Remove takes back what Add did, if it is still there.
func (w *Waiters) Remove(c *Coroutine) {
	if i := slices.Index(w.list, c); i >= 0 {
		w.list = slices.Delete(w.list, i, i+1)
	}
}

// Wake lets all run that wait, in the order in which they came.
func (w *Waiters) Wake() {
	list := w.list
	w.list = nil
	for _, c := range list {
		c.Ready()
	}
}

// queue is first in, first out.
type queue struct {
	list []*Coroutine
	head int
}

func (q *queue) push(c *Coroutine) { q.list = append(q.list, c) }

// pop returns nil if there is none.
func (q *queue) pop() *Coroutine {
	if q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
		return nil
	}
	c := q.list[q.head]
	q.list[q.head] = nil
	if q.head++; q.head > 64 && q.head > len(q.list)/2 { // coroutines may yield for long
		q.list, q.head = slices.Delete(q.list, 0, q.head), 0
	}
	return c
}
