package payloads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
)

// Object is one object of the store, as whoever decides what may go sees it.
type Object struct {
	Name   string
	ID     string // of its chunks
	Size   int64
	Seq    uint64    // of what is known of it
	Stored time.Time // the server's, UTC
}

// Objects calls fn for every object, the oldest first. An error of fn ends it and is returned, and
// so does an object of which what is known cannot be read: its chunks would look like nobody's.
func (s *Store) Objects(ctx context.Context, fn func(Object) error) error {
	o := natsconn.ReadOptions{FilterSubjects: []string{s.ns.AllPayloadInfos()}}
	err := s.conn.Scan(ctx, s.ns.StreamPayloads(), o, func(m natsconn.Stored) error {
		i := info{}
		if err := json.Unmarshal(m.Data, &i); err != nil {
			return fmt.Errorf("message %d of %s: what is stored of an object cannot be read: %w",
				m.Seq, s.ns.StreamPayloads(), err)
		}
		if i.Deleted {
			return nil
		}
		return fn(Object{Name: i.Name, ID: i.ID, Size: i.Size, Seq: m.Seq, Stored: m.Time})
	})
	return noStore(err)
}

// Chunks calls fn for every id under which chunks are stored, with the server's time of the last of
// them.
func (s *Store) Chunks(ctx context.Context, fn func(id string, last time.Time) error) error {
	all := s.ns.AllPayloadChunks()
	o := natsconn.ReadOptions{
		FilterSubjects: []string{all}, LastPerSubject: true, HeadersOnly: true,
	}
	err := s.conn.Scan(ctx, s.ns.StreamPayloads(), o, func(m natsconn.Stored) error {
		return fn(strings.TrimPrefix(m.Subject, strings.TrimSuffix(all, ">")), m.Time)
	})
	return noStore(err)
}

func noStore(err error) error {
	if errors.Is(err, natsconn.ErrNoStream) {
		return nil
	}
	return err
}

// Forget removes what is known of an object, and nothing that has been stored under its name since.
// Its chunks are nobody's from then on, see [Store.Scrap]: in this order no reader finds an object
// without its chunks.
func (s *Store) Forget(ctx context.Context, o Object) error {
	err := s.conn.DeleteMsg(ctx, s.ns.StreamPayloads(), o.Seq)
	if err != nil && !errors.Is(err, natsconn.ErrNotFound) {
		return fmt.Errorf("forget object %s: %w", o.Name, err)
	}
	return nil
}

// Remove removes an object that nobody names any more, and its chunks. One that is not there is no
// error.
func (s *Store) Remove(ctx context.Context, object string) error {
	i, err := s.info(ctx, object)
	if errors.Is(err, natsconn.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.Forget(ctx, Object{Name: object, Seq: i.seq}); err != nil {
		return err
	}
	return s.Scrap(ctx, i.ID)
}

// Scrap removes the chunks of an id that no object has.
func (s *Store) Scrap(ctx context.Context, id string) error {
	if err := s.conn.PurgeSubject(ctx, s.ns.StreamPayloads(), s.ns.PayloadChunks(id)); err != nil {
		return fmt.Errorf("remove the chunks %s: %w", id, err)
	}
	return nil
}
