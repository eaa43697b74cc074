package claims

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/sleep"
)

// listPage is how many keys are read in one round trip.
const listPage = 256

// Info is one claim, as it stands in the bucket.
type Info struct {
	Key      string
	Node     string // "" if the value cannot be read
	Boot     string
	StoreID  string
	Number   uint64
	Revision uint64
	Since    time.Time // when it was taken, by the server's clock
	Deadline time.Time // when it expires unless it is renewed, by the server's clock
	// the deadline has passed for certain, or the claim has not been renewed for as long as it
	// lasts
	Expired   bool
	Malformed bool // the value is not one of this package
}

// List tells which claims there are, sorted by key. Any replica may answer, so a claim that was
// just taken or released may be shown as it was before.
func (c *Claims) List(ctx context.Context) ([]Info, error) {
	prefix := c.subjectOf("")
	server := c.now(ctx)
	var all []Info
	over := map[uint64]bool{} // by revision
	for from, more := uint64(1), true; more; {
		var page []natsconn.Stored
		var err error
		page, more, err = c.conn.BatchGet(ctx, streamOf(c.bucket), prefix+">", from, listPage)
		if err != nil {
			return nil, fmt.Errorf("claims: list bucket %s: %w", c.bucket, wayOut(err))
		}
		for i := range page {
			from = page[i].Seq + 1
			e := c.entry(strings.TrimPrefix(page[i].Subject, prefix), &page[i])
			over[e.revision] = c.unchanged(e)
			if !e.absent {
				all = append(all, e.info(server))
			}
		}
		more = more && len(page) > 0
	}
	// A key that was renewed between two pages comes twice; the newer one is kept.
	slices.SortFunc(all, func(a, b Info) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), cmp.Compare(b.Revision, a.Revision))
	})
	all = slices.CompactFunc(all, func(a, b Info) bool { return a.Key == b.Key })
	if slices.ContainsFunc(all, func(i Info) bool { return i.Expired }) {
		server = c.askNow(ctx)
		for k := range all {
			all[k].Expired = all[k].Expired && expired(all[k].Deadline, server)
		}
	}
	for k := range all {
		all[k].Expired = all[k].Expired || over[all[k].Revision]
	}
	c.retain(all)
	return all, nil
}

func (e *entry) info(server time.Time) Info {
	i := Info{
		Key: e.key, Node: e.Node, Boot: e.Boot, StoreID: e.StoreID, Number: e.number(),
		Revision: e.revision, Since: e.Since.Time(), Deadline: e.expires, Malformed: e.malformed,
	}
	i.Expired = !server.IsZero() && e.expired(server)
	return i
}

// Confirm asks the bucket's leader whether a claim still stands as [Claims.List] has shown it. If
// it was renewed, taken or deleted meanwhile, the error wraps [ErrHeld].
func (c *Claims) Confirm(ctx context.Context, i Info) error {
	e, err := c.read(ctx, i.Key)
	if err != nil {
		return fmt.Errorf("claims: %w", err)
	}
	if e.revision != i.Revision {
		return fmt.Errorf("claims: %w: %s was changed meanwhile", ErrHeld, i.Key)
	}
	return nil
}

// Evict deletes a claim that [Claims.List] has shown as expired. If it is not expired, or was
// renewed or taken meanwhile, the error wraps [ErrHeld]. It is no error if the key is gone.
func (c *Claims) Evict(ctx context.Context, i Info) error {
	held := fmt.Errorf("claims: evict: %w",
		&HeldError{Key: i.Key, Holder: i.Node, Number: i.Number, Until: i.Deadline})
	if !i.Expired {
		return held
	}
	var err error
	for range attempts {
		err = c.conn.KVDelete(ctx, c.bucket, i.Key, i.Revision)
		switch {
		case err == nil:
			c.log.WithField("claim", i.Key).Infof("expired claim of node %s removed", i.Node)
			return nil
		case errors.Is(err, natsconn.ErrInFlight):
			sleep.For(ctx, shortPause)
			continue
		case errors.Is(err, natsconn.ErrWrongSequence):
			if e, readErr := c.read(ctx, i.Key); readErr == nil && e.absent {
				return nil
			}
			return held
		}
		break
	}
	return fmt.Errorf("claims: evict %s: %w", i.Key, err)
}
