package topology

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logx"
)

// EnsurePayloads makes the object store of a namespace's large payloads, or brings it to what the
// namespace is. It is not part of [Ensure]: most namespaces never need one, and on a cluster each
// stream costs an election. Version as in [Options].
//
// Errors: [ErrNoNamespace], [ErrDeleting], [*ConflictError], or what the server said.
func EnsurePayloads(
	ctx context.Context, conn *natsconn.Conn, ns subject.Namespace, version string,
) error {
	w := &work{js: conn.JetStream(), log: logx.Or(nil)}
	if err := w.ensurePayloads(ctx, ns, version); err != nil {
		return fmt.Errorf("topology: namespace %s, payloads: %w", ns, err)
	}
	return nil
}

func (w *work) ensurePayloads(ctx context.Context, name subject.Namespace, version string) error {
	ns, err := w.namespace(ctx, name)
	if err != nil {
		return err
	}
	want := ns.payloads(version)
	if err := w.stream(ctx, want); err != nil {
		return err
	}
	if err := w.outlives(ctx, name, want.Name); err != nil {
		return err
	}
	w.notePayloads(ctx, ns, version)
	return nil
}

// notePayloads notes that there is a store, for whoever finds none later. It tries once: the next
// process that stores a large payload does so again, and the store is as good without.
func (w *work) notePayloads(ctx context.Context, ns *Namespace, version string) {
	for _, want := range ns.streams(version) {
		if want.Name == ns.Name.StreamDead() {
			want.Metadata[metaPayloads] = "true"
			_ = w.adapt(ctx, want, new([]string))
		}
	}
}

// lostPayloads tells whether there was a store, by one of the streams of the namespace.
func lostPayloads(ns subject.Namespace, infos []*jetstream.StreamInfo) bool {
	was := false
	for _, i := range infos {
		switch {
		case i == nil:
		case i.Config.Name == ns.StreamPayloads():
			return false
		case i.Config.Name == ns.StreamDead():
			was = i.Config.Metadata[metaPayloads] != ""
		}
	}
	return was
}

// payloads is the object store of large payloads, a stream that every NATS client takes for one.
func (n *Namespace) payloads(version string) wanted {
	w := n.stream(version, n.Name.StreamPayloads(), "Drover: payloads too large for messages",
		n.Name.AllPayloadChunks(), n.Name.AllPayloadInfos())
	w.AllowRollup, w.AllowDirect = true, true
	return w
}
