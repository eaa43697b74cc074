package retention

import "container/heap"

// queue is a heap whose elements know their place, so that one can be moved or taken out wherever
// it is. An element is in one queue at most, and its place is the queue's to change.
type queue[T any] struct {
	all    []T
	before func(a, b T) bool
	place  func(T) *int // where an element keeps its place, counted from 1; 0 if it is in no queue
}

func (q *queue[T]) Len() int           { return len(q.all) }
func (q *queue[T]) Less(i, j int) bool { return q.before(q.all[i], q.all[j]) }

func (q *queue[T]) Swap(i, j int) {
	q.all[i], q.all[j] = q.all[j], q.all[i]
	*q.place(q.all[i]), *q.place(q.all[j]) = i+1, j+1
}

// Push is for container/heap. Use put.
func (q *queue[T]) Push(x any) {
	q.all = append(q.all, x.(T))
	*q.place(x.(T)) = len(q.all)
}

// Pop is for container/heap. Use drop.
func (q *queue[T]) Pop() any {
	last := len(q.all) - 1
	x := q.all[last]
	clear(q.all[last:])
	q.all = q.all[:last]
	*q.place(x) = 0
	return x
}

// first is the element that comes before all others.
func (q *queue[T]) first() (x T, ok bool) {
	if len(q.all) == 0 {
		return x, false
	}
	return q.all[0], true
}

// put adds an element, or moves it to where it belongs by now.
func (q *queue[T]) put(x T) {
	if at := *q.place(x); at > 0 {
		heap.Fix(q, at-1)
		return
	}
	heap.Push(q, x)
}

// drop takes an element out, if it is there.
func (q *queue[T]) drop(x T) {
	if at := *q.place(x); at > 0 {
		heap.Remove(q, at-1)
	}
}
