package topology

import (
	"context"
	"fmt"

	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/silent"
)

// EnsurePayloads makes the object store of a namespace's large payloads, or brings it to what the namespace is. It is not
// part of [Ensure]: most namespaces never need one, and on a cluster each stream costs an election. Version as in [Options].
//
// Errors: [ErrNoNamespace], [ErrDeleting], [*ConflictError], or what the server said.
func EnsurePayloads(ctx context.Context, conn *post.Conn, ns subject.Namespace, version string) error {
	w := &work{js: conn.JetStream(), log: silent.Or(nil)}
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
	return w.outlives(ctx, name, want.Name)
}

// payloads is the object store of large payloads, a stream that every NATS client takes for one.
func (n *Namespace) payloads(version string) wanted {
	w := n.stream(version, n.Name.StreamPayloads(), "Drover: payloads too large for messages", n.Name.AllPayloadChunks(), n.Name.AllPayloadInfos())
	w.AllowRollup, w.AllowDirect = true, true
	return w
}
