package topology

import (
	"context"
	"slices"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
)

// A creation that NATS refuses halfway leaves what was made by then. It is not taken back: a
// namespace is there for everybody from its first stream on, others may complete it and write to it
// meanwhile, and nobody can tell a stream that was just made from one that lost its messages. So it
// is told from a whole one, and completed by the same command.

// lacks tells whether a stream or bucket is missing that [Ensure] makes, from the names of those
// that are there.
func (n *Namespace) lacks(have map[string]bool) bool {
	version := buildVersion()
	return slices.ContainsFunc(append(n.streams(version), n.buckets(version)...),
		func(w wanted) bool { return !have[w.Name] })
}

// NoteIncomplete notes which namespaces lack something. It asks two questions, however many they
// are.
func NoteIncomplete(ctx context.Context, conn *natsconn.Conn, all []*Info) error {
	ctx, stop := untilRefused(ctx, conn)
	defer stop()
	w := &work{js: conn.JetStream()}
	have := map[string]bool{}
	for _, filter := range []string{subject.Root + ".>", "$KV.>"} {
		names, err := w.names(ctx, filter)
		if err != nil {
			return orRefused(ctx, err)
		}
		for _, name := range names {
			have[name] = true
		}
	}
	for _, i := range all {
		i.Incomplete = i.lacks(have)
	}
	return nil
}
