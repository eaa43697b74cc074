package timers

import "container/heap"

// alarm is one run's alarm. There may be a million of them, so it holds little: about 200 bytes with its subject and its
// places in queue and book.
type alarm struct {
	subject string
	seq     uint64 // of its message
	fence   uint64 // of the owner who armed it; 0 if unknown
	due     int64  // Unix nanoseconds, by the server's clock
	at      int64  // when to ring: due, or later if a ring was not stored
	index   int    // in the queue; ringing when it is not there
}

// ringing is the index of an alarm whose ring is under way.
const ringing = -1

// queue holds alarms, the one to ring first at its head. It is a [heap.Interface]; use add, move and next.
type queue []*alarm

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at < q[j].at }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements [heap.Interface].
func (q *queue) Push(x any) {
	a, _ := x.(*alarm)
	a.index = len(*q)
	*q = append(*q, a)
}

// Pop implements [heap.Interface].
func (q *queue) Pop() any {
	old := *q
	a := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	a.index = ringing
	return a
}

// put adds an alarm, or moves it to where its time says.
func (q *queue) put(a *alarm) {
	if a.index == ringing {
		heap.Push(q, a)
		return
	}
	heap.Fix(q, a.index)
}

// next takes out the first alarm if it is to ring at now or earlier.
func (q *queue) next(now int64) *alarm {
	if len(*q) == 0 || (*q)[0].at > now {
		return nil
	}
	a, _ := heap.Pop(q).(*alarm)
	return a
}
