package claims

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/sleep"
)

// A holder that dies need not be waited for. NATS closes its connection in the same moment, and
// tells whoever publishes to where it listened that nobody does. So each claim names a subject on
// which its holder's connection listens as long as it lives, and the server that it leads to.
// Whoever follows the bucket, and is connected to that same server, asks now and then; the claims
// of a connection that is gone are deleted, and whoever waits for one takes it (ADR 0037).
//
//   - That nobody listens is the server's own knowledge of its own client: of no other server's
//     clients is it believed.
//   - A holder whose connection was lost and who lives on has no lease any more when it connects
//     again ([Lease.Valid] asks for that before each write), and until then nothing that it sends
//     arrives. So it cannot act beside who has taken its claim, any more than one whose lease has
//     run out: what was on its way when the connection ended is refused by fences (P-16).
//   - A process that stands still, or whose machine has stopped without a word, keeps its
//     connection. The TTL is for that.

const (
	// missesPerLook is how often it is asked for others while a Share looks once.
	missesPerLook = 2
	// mostAsked bounds how many others are asked about at a time: those that follow in the order of
	// their subjects, so that each is asked about by as many.
	mostAsked = 16
)

// others are the claims of other connections.
type others struct {
	mu   sync.Mutex
	seen map[string]holding // by key
	come chan struct{}      // holds a value when another has come, or written
}

// holding is a claim as it was last seen.
type holding struct {
	home, server, node string
	revision           uint64
}

// note takes a change of the bucket.
func (c *Claims) note(key string, body []byte, rev uint64, deleted bool) {
	o := &c.watch.others
	var v value
	if !deleted && json.Unmarshal(body, &v) != nil || strings.HasPrefix(v.Nonce, c.instance) {
		v.Home = "" // or our own
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if v.Home == "" {
		delete(o.seen, key)
		return
	}
	if o.seen == nil {
		o.seen = map[string]holding{}
	}
	o.seen[key] = holding{v.Home, v.Server, v.Node, rev}
	select {
	case o.come <- struct{}{}:
	default:
	}
}

// neighbours are the homes of others on a server, in order from own home on.
func (o *others) neighbours(own, server string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []string
	for _, h := range o.seen {
		if h.server == server {
			all = append(all, h.home)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	i, _ := slices.BinarySearch(all, own)
	all = slices.Concat(all[i:], all[:i])
	return all[:min(len(all), mostAsked)]
}

// of lists the claims of some homes. Those by which a node is known to be alive come first: whoever
// learns that another claim is free must know by then that its holder is not one to be waited for.
func (o *others) of(homes []string) (keys []string, held map[string]holding) {
	o.mu.Lock()
	defer o.mu.Unlock()
	held = map[string]holding{}
	for key, h := range o.seen {
		if slices.Contains(homes, h.home) {
			held[key] = h
			keys = append(keys, key)
		}
	}
	work := func(key string) bool {
		return !strings.HasPrefix(key, RoleBroker+".") && !strings.HasPrefix(key, RoleTimers+".")
	}
	slices.SortFunc(keys, func(a, b string) int {
		if work(a) != work(b) {
			return map[bool]int{false: -1, true: 1}[work(a)]
		}
		return strings.Compare(a, b)
	})
	return keys, held
}

// drop forgets a claim that does not stand any more as it was seen: what has followed it is noted,
// or it has expired and nobody said so.
func (o *others) drop(key string, revision uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen[key].revision == revision {
		delete(o.seen, key)
	}
}

// miss looks for others that are gone, until ctx ends.
func (c *Claims) miss(ctx context.Context) {
	o := &c.watch.others
	every := max(c.opts.LookEvery/missesPerLook, time.Millisecond)
	for {
		server, dials := c.conn.NATS().ConnectedServerId(), c.conn.Dials()
		homes := o.neighbours(c.conn.Home(), server)
		if len(homes) == 0 { // in a namespace of one node nobody asks, nor wakes for it
			select {
			case <-o.come:
				continue
			case <-ctx.Done():
				return
			}
		}
		keys, held := o.of(homes)
		gone, err := c.conn.Unheard(ctx, homes)
		switch {
		case errors.Is(err, natsconn.ErrPermission):
			c.log.WithField("err", err).
				Debug("others cannot be asked for; their claims must run out")
			return
		case err != nil, c.conn.Dials() != dials, c.conn.NATS().ConnectedServerId() != server:
		default:
			c.bury(ctx, gone, keys, held)
		}
		if sleep.For(ctx, every) != nil {
			return
		}
	}
}

// bury frees the claims of connections that are gone, as they were seen before those were asked
// for. What they, or others, have written since stands: a holder who connects again listens where
// it did before.
func (c *Claims) bury(ctx context.Context, gone, keys []string, held map[string]holding) {
	freed := map[string]int{}
	for _, key := range keys {
		if !slices.Contains(gone, held[key].home) {
			continue
		}
		one, cancel := context.WithTimeout(ctx, c.opts.TTL/3)
		err := c.conn.KVDelete(one, c.bucket, key, held[key].revision)
		cancel()
		switch {
		case err == nil:
			freed[held[key].node]++
		case ctx.Err() != nil:
			return
		default: // else it is tried again with the next look
			if errors.Is(err, natsconn.ErrWrongSequence) {
				c.watch.others.drop(key, held[key].revision)
			}
			c.log.WithFields(logrus.Fields{"claim": key, "err": err}).
				Debug("the claim of a node that is gone was not deleted")
		}
	}
	for node, n := range freed {
		c.log.WithFields(logrus.Fields{"holder": node, "claims": n}).
			Info("the connection of a node is gone: its claims are free")
	}
}
