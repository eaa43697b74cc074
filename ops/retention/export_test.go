package retention

import "context"

// Serve answers questions as the janitor of a master does.
func (j *Janitor) Serve(ctx context.Context) (stop func(), err error) { return j.serve(ctx) }

// Remembered is how many bytes the runs take that are kept softly.
func (j *Janitor) Remembered() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.soft.size
}

// Listen lets the janitor be told of what closes, as Run does.
func (j *Janitor) Listen() { j.follower.Queue.Listen(true) }

// Known is how many closed runs it keeps.
func (j *Janitor) Known() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.index.size
}
