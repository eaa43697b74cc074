package metrics

import (
	"runtime"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/stats"
	"github.com/droverhq/drover/internal/diskspace"
	"github.com/droverhq/drover/internal/tally"
)

// Set is what a process shows. It implements [prometheus.Collector].
type Set struct {
	version, store string
	labels         labels

	mu     sync.Mutex
	spaces map[string]*Namespace
}

// New returns the set of a server of some version. Store is the folder of its own NATS server's
// store, empty if it has none.
func New(version, store string) *Set {
	return &Set{version: version, store: store, spaces: map[string]*Namespace{}}
}

// Namespace returns what is shown of a namespace, which is the same for as long as it is not
// dropped. A nil Set has none: its namespaces are nil, too.
func (s *Set) Namespace(name string) *Namespace {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.spaces[name]
	if n == nil {
		n = &Namespace{name: name}
		s.spaces[name] = n
	}
	return n
}

// Drop forgets a namespace that is not served any more.
func (s *Set) Drop(name string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.spaces, name)
}

// Namespace is what is shown of one. A nil one counts and shows nothing.
type Namespace struct {
	name  string
	stats stats.Stats

	mu         sync.Mutex
	partitions int
	claims     *claims.Claims
	master     func() bool
	purged     int64
	lost       int64 // claims of former generations of the roles
	index      func() IndexStats
	read       readings
	audited    audited
}

// Stats are for the roles to count with; nil of a nil namespace.
func (n *Namespace) Stats() *stats.Stats {
	if n == nil {
		return nil
	}
	return &n.stats
}

// Roles says how many partitions the namespace has, which claims the roles hold now, and how to
// learn whether this node is the master. The roles of an earlier call have ended.
func (n *Namespace) Roles(partitions int, c *claims.Claims, master func() bool) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.claims != nil {
		_, lost := n.claims.Stats()
		n.lost += lost
	}
	n.partitions, n.claims, n.master = partitions, c, master
}

// IndexStats is how the index of runs of this process stands.
type IndexStats struct {
	Rows  int
	Bytes int64
	Whole bool // else it is being built
}

// Index says how to learn how the index of this process stands.
func (n *Namespace) Index(stands func() IndexStats) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.index = stands
}

// Purged counts closed runs that were purged.
func (n *Namespace) Purged(runs int) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.purged += int64(runs)
}

// Describe implements [prometheus.Collector].
func (s *Set) Describe(to chan<- *prometheus.Desc) {
	for _, m := range table {
		to <- m.desc
	}
}

// Collect implements [prometheus.Collector].
func (s *Set) Collect(to chan<- prometheus.Metric) {
	s.each(func(m *sample) { to <- m })
}

// each tells of every sample there is now.
func (s *Set) each(tell func(*sample)) {
	c := &collection{tell: tell, labels: &s.labels}
	c.put(buildInfo, 1, s.version, runtime.Version())
	if s.store != "" {
		if free, total := diskspace.Of(s.store); total > 0 {
			c.put(storeFree, float64(free))
		}
	}
	s.mu.Lock()
	spaces := make([]*Namespace, 0, len(s.spaces))
	for _, n := range s.spaces {
		spaces = append(spaces, n)
	}
	s.mu.Unlock()
	for _, n := range spaces {
		c.namespace(n)
	}
}

// collection is one scrape.
type collection struct {
	tell   func(*sample)
	labels *labels
}

func (c *collection) put(m *Metric, value float64, labels ...string) {
	c.tell(&sample{Metric: m, series: c.labels.of(m, labels...), value: value})
}

func (c *collection) times(m *Metric, h *tally.Histogram, labels ...string) {
	read := h.Read()
	c.tell(&sample{Metric: m, series: c.labels.of(m, labels...), times: &read})
}
