package goroutines

// Waiting is how many goroutines wait for a job.
func (c *Pool[T]) Waiting() int { return int(c.idle.Load()) }
