package claims

import (
	"context"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/droverhq/drover/internal/bucketkey"
	"github.com/droverhq/drover/internal/sleep"
)

// The roles that spread partitions over their nodes. The name begins the claim by which a live node
// is known to the others.
const (
	RoleBroker = "broker"
	RoleTimers = "timers"
)

// Share spreads partitions over the live nodes of a role by rendezvous hashing: each partition
// prefers one of them, and a node that comes or goes moves only its own share. It is advice: a
// partition that its preferred node does not take is taken by another, and safety rests on claims
// and fences alone. It is made by [Claims.Share].
type Share struct {
	claims *Claims
	prefix string
	self   string

	mu   sync.Mutex
	live []string
	// told is what the bucket has told of late: a list may have been read before, or come from a
	// replica that has not heard of it.
	told map[string]lastChange
}

// lastChange is the last change of the claim by which a node is known.
type lastChange struct {
	at   time.Time
	left bool
}

// Share returns the share of this node in the partitions of a role. Until [Share.Watch] runs it
// knows of no other node.
func (c *Claims) Share(role string) *Share {
	return &Share{claims: c, prefix: role + ".", self: bucketkey.Escape(c.opts.Node)}
}

// complainEvery is between two complaints of one kind.
const complainEvery = time.Minute

// Watch keeps the list of live nodes until ctx is done, and this node on it until leaving is done.
// It calls left when others know that it has left: they do not wait for it when they find a
// partition of its share free. Errors that keep it from looking go to complain, the same one once
// in a while; it looks again.
func (s *Share) Watch(ctx, leaving context.Context, left func(), complain func(error)) {
	c := s.claims
	var wg sync.WaitGroup
	wg.Go(func() {
		defer left()
		err := c.Hold(leaving, s.prefix+s.self, HoldOptions{},
			func(ctx context.Context, _ *Lease) error {
				<-ctx.Done()
				return nil
			})
		if err != nil && leaving.Err() == nil {
			complain(err)
		}
	})
	defer wg.Wait()
	defer c.Watch(s.prefix,
		func(key string, deleted bool) { s.changed(strings.TrimPrefix(key, s.prefix), deleted) })()
	said, saidAt := "", time.Time{}
	for {
		held, err := c.recent(ctx)
		switch {
		case err == nil:
			s.update(held)
			said = ""
		case ctx.Err() == nil && (err.Error() != said || time.Since(saidAt) >= complainEvery):
			said, saidAt = err.Error(), time.Now()
			complain(err)
		}
		if sleep.For(ctx, c.opts.LookEvery) != nil {
			return
		}
	}
}

// recent is the list of claims, at most a look old: the shares of several roles look once for all.
func (c *Claims) recent(ctx context.Context) ([]Info, error) {
	select {
	case c.looking <- struct{}{}:
		// not a mutex: the look ends with its context, and in tests a mutex would stop the clock
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.looking }()
	if c.seen != nil && time.Since(c.seenAt) < c.opts.LookEvery*9/10 {
		return c.seen, nil
	}
	at := time.Now()
	held, err := c.List(ctx)
	if err == nil {
		c.seen, c.seenAt = held, at
	}
	return held, err
}

// update takes a list. For two looks it is not believed about a node of which the bucket has told
// otherwise.
func (s *Share) update(held []Info) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.told,
		func(_ string, t lastChange) bool { return time.Since(t.at) > 2*s.claims.opts.LookEvery })
	s.live = s.live[:0:0]
	listed := map[string]bool{}
	for _, i := range held {
		name, ok := strings.CutPrefix(i.Key, s.prefix)
		if !ok {
			continue
		}
		if listed[name] = true; !i.Expired && !s.told[name].left {
			s.live = append(s.live, name)
		}
	}
	for name, t := range s.told {
		if !t.left && !listed[name] {
			s.live = append(s.live, name)
		}
	}
}

// changed takes what the bucket tells: a node has come, is still there, or has left.
func (s *Share) changed(name string, left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told == nil {
		s.told = map[string]lastChange{}
	}
	s.told[name] = lastChange{time.Now(), left}
	if left {
		s.live = slices.DeleteFunc(s.live, func(n string) bool { return n == name })
	} else if !slices.Contains(s.live, name) {
		s.live = append(s.live, name)
	}
}

// Alone tells whether no other node of the role is there to take over.
func (s *Share) Alone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(s.live, func(n string) bool { return n != s.self })
}

// Mine tells whether this node is the preferred owner of a partition.
func (s *Share) Mine(partition int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return preferred(partition, s.live, s.self) == s.self
}

// preferred picks the node with the highest weight for a partition; without any other it is self.
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

// weight is a well mixed hash of partition and name: FNV alone leaves names that differ in one
// letter too close together.
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
