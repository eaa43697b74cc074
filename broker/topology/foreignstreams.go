package topology

import (
	"context"
	"errors"
	"slices"

	"github.com/droverhq/drover/broker/subject"
	"github.com/nats-io/nats.go/jetstream"
)

// ForeignStream is a stream that somebody has made on subjects of Drover's requests
// ([subject.Namespace.Requests]). None of Drover's has them.
type ForeignStream struct {
	Stream string
	// Subjects are those of the stream that match requests.
	Subjects []string
	// Silent streams (no_ack) answer nothing. That nobody listens is still not told to who asks.
	Silent bool
}

// foreignStreams finds the streams on subjects of requests, sorted by their names. What each has is
// asked of that stream alone: the server lists names by one subject at a time, and does not say
// which of a stream's it was.
func (w *work) foreignStreams(ctx context.Context, ns subject.Namespace) ([]ForeignStream, error) {
	requests := ns.Requests()
	found, errs := make([][]string, len(requests)), make([]error, len(requests))
	each(len(requests), func(n int) { found[n], errs[n] = w.names(ctx, requests[n]) })
	if err := firstCause(errs); err != nil {
		return nil, err
	}
	names := slices.Concat(found...)
	slices.Sort(names)
	var all []ForeignStream
	for _, name := range slices.Compact(names) {
		info, err := w.streamInfo(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue // it is gone meanwhile
		}
		if err != nil {
			return nil, err
		}
		s := ForeignStream{Stream: name, Silent: info.Config.NoAck}
		for _, has := range info.Config.Subjects {
			if slices.ContainsFunc(requests,
				func(r string) bool { return subject.Overlap(r, has) }) {
				s.Subjects = append(s.Subjects, has)
			}
		}
		all = append(all, s)
	}
	return all, nil
}
