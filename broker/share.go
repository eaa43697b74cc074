package broker

import (
	"context"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/droverhq/drover/broker/claims"
)

// brokerPrefix begins the claim by which a live broker is known to the others.
const brokerPrefix = "broker."

// lookEvery is how often a broker looks who else is alive. What the bucket tells of its own accord comes sooner.
const lookEvery = time.Second

// share spreads the partitions over the live brokers by rendezvous hashing: each partition prefers one of them, and a
// broker that comes or goes moves only its own share. It is advice: a partition that its preferred broker does not take
// is taken by another, and safety rests on claims and fences alone.
type share struct {
	node string

	mu   sync.Mutex
	live []string
	// gone are those that have left as planned, and when: a list may come from a replica that has not heard of it.
	gone map[string]time.Time
}

// watch keeps the list of live brokers until ctx is done, and this broker on it until leaving is done. It calls left when
// others know that it has left: they do not wait for it when they find a partition of its share free.
func (s *share) watch(ctx, leaving context.Context, c *claims.Claims, left func(), complain func(error)) {
	var wg sync.WaitGroup
	wg.Go(func() {
		defer left()
		err := c.Hold(leaving, brokerPrefix+claimName(s.node), claims.HoldOptions{}, func(ctx context.Context, _ *claims.Lease) error {
			<-ctx.Done()
			return nil
		})
		if err != nil && leaving.Err() == nil {
			complain(err)
		}
	})
	defer wg.Wait()
	defer c.Watch(brokerPrefix, func(key string, deleted bool) { s.changed(strings.TrimPrefix(key, brokerPrefix), deleted) })()
	for {
		if held, err := c.List(ctx); err == nil {
			s.update(held)
		} else if ctx.Err() == nil {
			complain(err)
		}
		if pause(ctx, lookEvery) != nil {
			return
		}
	}
}

func (s *share) update(held []claims.Info) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = s.live[:0:0]
	for _, i := range held {
		if name, ok := strings.CutPrefix(i.Key, brokerPrefix); ok && !i.Expired && time.Since(s.gone[name]) > 2*lookEvery {
			s.live = append(s.live, name)
		}
	}
}

// changed takes what the bucket tells: a broker has come, is still there, or has left.
func (s *share) changed(name string, left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left {
		if s.gone == nil {
			s.gone = make(map[string]time.Time)
		}
		s.gone[name] = time.Now()
		s.live = slices.DeleteFunc(s.live, func(n string) bool { return n == name })
		return
	}
	delete(s.gone, name)
	if !slices.Contains(s.live, name) {
		s.live = append(s.live, name)
	}
}

// alone tells whether no other broker is there to take over.
func (s *share) alone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	me := claimName(s.node)
	return !slices.ContainsFunc(s.live, func(n string) bool { return n != me })
}

// mine tells whether this broker is the preferred owner of a partition.
func (s *share) mine(partition int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	me := claimName(s.node)
	return preferred(partition, s.live, me) == me
}

// preferred picks the broker with the highest weight for a partition; without any other it is self.
func preferred(partition int, live []string, self string) string {
	best, top := self, weight(partition, self)
	if len(live) > 0 && !slices.Contains(live, self) {
		best, top = "", 0
	}
	for _, name := range live {
		if w := weight(partition, name); best == "" || w > top || w == top && name < best {
			best, top = name, w
		}
	}
	return best
}

// weight is a well mixed hash of partition and name: FNV alone leaves names that differ in one letter too close together.
func weight(partition int, name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(strconv.Itoa(partition) + "/" + name))
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// claimName makes a node's name fit a key of the claims bucket.
func claimName(node string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, node)
}
