package stats

import "context"

type inContext struct{}

// With is a context of work whose requests s counts; see [From].
func With(ctx context.Context, s *Stats) context.Context {
	return context.WithValue(ctx, inContext{}, s)
}

// From is what counts for the work of a context; nil if nothing does.
func From(ctx context.Context) *Stats {
	s, _ := ctx.Value(inContext{}).(*Stats)
	return s
}
