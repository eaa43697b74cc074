// Package goroutines runs functions side by side on goroutines that outlive them.
//
// A goroutine begins with a small stack. One for each task grows it each time, and copies it: a
// tenth of the CPU of a worker whose tasks take microseconds. A goroutine of a pool keeps its stack
// and waits for the next task.
package goroutines

import (
	"runtime"
	"sync/atomic"
)

// kept is how much of its stack a goroutine uses at least, in bytes. Whenever garbage is collected
// Go halves the stacks of which less than a quarter is in use, and who waits uses next to nothing:
// the next job would grow it again. So stacks of up to 16 KiB stay.
const kept = 4 << 10

// Pool calls a function for each of its jobs, all at once: it bounds nothing but how many
// goroutines wait.
type Pool[T any] struct {
	do   func(T)
	most int32
	idle atomic.Int32
	jobs chan T // without a buffer: a job is taken by one who waits, or by a new one
	done chan struct{}
}

// New returns a pool that calls do, which may end its goroutine. At most so many goroutines wait
// for jobs. Close it.
func New[T any](most int, do func(T)) *Pool[T] {
	return &Pool[T]{do: do, most: int32(most), jobs: make(chan T), done: make(chan struct{})}
}

// Do lets somebody do the job, at once. It does not block.
func (c *Pool[T]) Do(job T) {
	select {
	case c.jobs <- job:
	default:
		go c.work(job)
	}
}

func (c *Pool[T]) work(job T) {
	var stack [kept]byte
	defer runtime.KeepAlive(&stack)
	for {
		c.do(job)
		var none T
		if job = none; c.idle.Add(1) > c.most {
			c.idle.Add(-1)
			return
		}
		select {
		case job = <-c.jobs:
			c.idle.Add(-1)
		case <-c.done:
			return
		}
	}
}

// Close lets those go that wait, and each of the others once its job is done. It is called once.
// Jobs may still be given.
func (c *Pool[T]) Close() { close(c.done) }
