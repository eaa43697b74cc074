package retention

import "context"

// Serve answers questions as the janitor of a master does.
func (j *Janitor) Serve(ctx context.Context) (stop func(), err error) { return j.serve(ctx) }
