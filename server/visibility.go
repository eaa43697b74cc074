package server

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/ops/operations"
	"github.com/droverhq/drover/ops/retention"
	"github.com/droverhq/drover/ops/visibility"
)

// mostIndexMemory bounds the default of [Options.IndexMemory].
const mostIndexMemory = 1 << 30

// indexMemory is the default of [Options.IndexMemory] on a machine with so many bytes, 0 if that is
// not known.
func indexMemory(machine int64) int64 {
	if machine == 0 {
		return mostIndexMemory
	}
	return min(machine/4, mostIndexMemory)
}

// machineMemory is how many bytes the machine has, 0 where it does not tell.
func machineMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 3 && words[0] == "MemTotal:" && words[2] == "kB" {
			kib, err := strconv.ParseInt(words[1], 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

// indexDir is the folder for snapshots; empty if there is none.
func (n *node) indexDir() string {
	if n.o.IndexDir == "" && n.server != nil && !n.server.Memory() {
		return filepath.Join(n.server.StoreDir(), "index")
	}
	return n.o.IndexDir
}

// visibility makes the index of the namespace.
func (t *tenant) visibility() (*visibility.Index, error) {
	return visibility.New(visibility.Options{
		Dial: func(ctx context.Context) (*natsconn.Conn, error) {
			return t.generation.dial(ctx, t.claims.Node()+" index")
		},
		Namespace: t.space.Name, Partitions: t.space.Partitions, Node: t.claims.Node(),
		Logger: t.log, Dir: t.node.indexDir(),
		Note: operations.New(t.conn, t.space.Name, t.claims.Node(), t.log).Note,
		Owned: func() []int {
			if t.broker == nil {
				return nil
			}
			return t.broker.Owned()
		},
		Memory: func() int64 {
			return t.node.o.IndexMemory / int64(max(len(t.node.served.sorted()), 1))
		},
	})
}

// changed is who hears what the broker tells of its records.
func (t *tenant) changed(janitor *retention.Janitor) func(int, uint64, uint64, []broker.Change) {
	if t.index == nil {
		return janitor.Changed
	}
	return func(partition int, from, to uint64, changed []broker.Change) {
		janitor.Changed(partition, from, to, changed)
		t.index.Changed(partition, from, to, changed)
	}
}
