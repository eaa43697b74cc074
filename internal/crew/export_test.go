package crew

// Waiting is how many goroutines wait for a job.
func (c *Crew[T]) Waiting() int { return int(c.idle.Load()) }
