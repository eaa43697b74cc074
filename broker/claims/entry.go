package claims

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// value is what stands in a key: JSON, so that "nats kv get" shows it.
type value struct {
	Node    string `json:"node"`
	Boot    string `json:"boot,omitempty"`
	StoreID string `json:"storeId,omitempty"`
	Nonce   string `json:"nonce"`
	// absent in the write that takes the key: it is its revision
	Number   uint64            `json:"number,omitempty"`
	Since    schemas.Timestamp `json:"since"`
	Deadline schemas.Timestamp `json:"deadline"`
	TTL      schemas.Duration  `json:"ttl"`
	// Home is where the connection listens that does the work, and Server the NATS server that it
	// leads to: see gone.go.
	Home   string `json:"home,omitempty"`
	Server string `json:"server,omitempty"`
}

// entry is what a key holds.
type entry struct {
	value
	key       string
	revision  uint64 // of the claim, or of the mark that a deletion left; 0 if there is neither
	absent    bool
	malformed bool
	lasts     time.Duration
	expires   time.Time // by the server's clock
}

func (e *entry) expired(server time.Time) bool { return expired(e.expires, server) }

func expired(deadline, server time.Time) bool { return !server.Before(deadline.Add(margin)) }

// number is the claim number of the holder.
func (e *entry) number() uint64 {
	if e.Number != 0 {
		return e.Number
	}
	return e.revision
}

// The layout of NATS's key-value buckets.
func streamOf(bucket string) string { return "KV_" + bucket }

func (c *Claims) subjectOf(key string) string { return "$KV." + c.bucket + "." + key }

func (c *Claims) entry(key string, s *natsconn.Stored) *entry {
	e := &entry{key: key, revision: s.Seq}
	if s.Header.Get("KV-Operation") != "" || s.Header.Get("Nats-Marker-Reason") != "" {
		e.absent = true
		return e
	}
	ttl := c.opts.TTL
	if err := json.Unmarshal(s.Data, &e.value); err != nil || e.Node == "" || e.Nonce == "" ||
		e.TTL.Std() < minTTL || e.TTL.Std() > maxTTL {
		// Nobody renews what no Claims wrote, but a newer version may have written it: it is given
		// the usual time.
		e.value, e.malformed = value{}, true
	} else {
		ttl = e.TTL.Std()
	}
	e.lasts, e.expires = ttl, s.Time.Add(ttl)
	return e
}

// read asks the bucket's leader for a key.
func (c *Claims) read(ctx context.Context, key string) (*entry, error) {
	s, err := c.conn.LastBySubject(ctx, streamOf(c.bucket), c.subjectOf(key))
	if errors.Is(err, natsconn.ErrNotFound) {
		return &entry{key: key, absent: true}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("claim %s: %w", key, wayOut(err))
	}
	c.clock.Observe(s.Time, time.Now())
	return c.entry(key, s), nil
}

// wayOut adds to an error of a bucket that is not there what makes it anew. Those who take claims
// do not: a bucket that goes with its namespace would be made after it.
func wayOut(err error) error {
	if errors.Is(err, natsconn.ErrNoStream) {
		return fmt.Errorf(
			"%w: unless the namespace is being deleted, \"drover namespace create\" with its "+
				"name makes the bucket anew", err)
	}
	return err
}

// rereadTimeout is shorter than a third of most TTLs, and what a stop of the process may have to
// wait.
const rereadTimeout = 2 * time.Second

// reread reads a key after a write whose outcome is unknown. The time that the write had is used
// up, so it has its own.
func (c *Claims) reread(ctx context.Context, key string) (*entry, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(c.opts.TTL/3, rereadTimeout))
	defer cancel()
	return c.read(ctx, key)
}

// write stores a claim of this node, for the work of a connection, if the key's last revision is
// rev.
func (c *Claims) write(
	ctx context.Context, key string, v value, rev uint64, by *natsconn.Conn,
) (uint64, error) {
	v.Node, v.Boot, v.StoreID, v.TTL = c.opts.Node, c.opts.Boot, c.opts.StoreID,
		schemas.Duration(c.opts.TTL)
	v.Home, v.Server = by.Home(), by.NATS().ConnectedServerId()
	v.Deadline = schemas.At(c.estimate(time.Now()).Add(c.opts.TTL))
	body, err := json.Marshal(v)
	if err != nil {
		return 0, fmt.Errorf("claim %s: %w", key, err)
	}
	rev, err = c.conn.KVUpdate(ctx, c.bucket, key, body, rev, c.opts.TTL)
	if err != nil {
		return 0, fmt.Errorf("claim %s: %w", key, err)
	}
	return rev, nil
}
