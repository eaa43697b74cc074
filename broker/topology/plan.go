package topology

import "github.com/nats-io/nats.go/jetstream"

// Plan returns the streams of a namespace with one task list, as [Ensure], [EnsureList] and
// [EnsurePayloads] make them on a server that has nothing yet. It asks no server. It is for
// documentation, and for whoever wants to see them before.
func (n *Namespace) Plan(list string) []jetstream.StreamConfig {
	const version = "0.0.0"
	all := append([]wanted{n.signals(version)}, n.streams(version)...)
	all = append(all, n.tasks(version, list))
	all = append(all, n.buckets(version)...)
	all = append(all, n.payloads(version))
	configs := make([]jetstream.StreamConfig, len(all))
	for i, w := range all {
		configs[i] = w.StreamConfig
	}
	return configs
}
