package retention

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/large"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

const (
	// orphanAge is how old an object is at the least when it goes (P-14).
	orphanAge = 24 * time.Hour
	// looksApart is how far apart the two looks are at the least that an object must not be named
	// in: whatever was on its way to a stream at the first has come there by then, or never will.
	looksApart = time.Hour
	// sweepRate is how many bytes of histories and inboxes are read in a second, with their bodies.
	sweepRate = 8 * natsconn.Leisurely
)

// SweepReport is what one look at the payloads has seen and done.
type SweepReport struct {
	Objects int   // old enough to go
	Unnamed int   // that nothing names; they go with the next look if nothing does then
	Removed int   // objects that went
	Bytes   int64 // of those
	Scraps  int   // uploads without an end that went
	Took    time.Duration
}

// unnamed is what the last look has found that nothing names.
type unnamed struct {
	at    time.Time
	names map[string]uint64 // with the sequence of what is known of the object
}

// Sweep is one look at the payloads that are kept beside the histories. An object goes if it is a
// day old, and neither this look nor the last one, at least an hour before, has found its name in
// any history, log, bucket, or dead letter. No history goes meanwhile. An error leaves what is not
// removed yet to the next look.
func (j *Janitor) Sweep(ctx context.Context) (*SweepReport, error) {
	j.purging.Lock()
	defer j.purging.Unlock()
	r, err := j.sweep(ctx)
	if err != nil {
		return nil, fmt.Errorf("retention: payloads: %w", err)
	}
	return r, nil
}

// sweep is Sweep. The caller holds purging.
func (j *Janitor) sweep(ctx context.Context) (*SweepReport, error) {
	began := time.Now()
	now, err := j.serverTime(ctx)
	if err != nil {
		return nil, err
	}
	store := payloads.NewStore(j.o.Conn, j.o.Namespace, nil) // it is only read, and made smaller
	old, scraps, err := j.oldObjects(ctx, store, now)
	if err != nil {
		return nil, err
	}
	f := newFinder(slices.Collect(maps.Keys(old)))
	if err := j.mark(ctx, f); err != nil {
		return nil, err
	}
	r := &SweepReport{Objects: len(old), Unnamed: len(f.missing)}
	for _, o := range j.twice(now, f, old) {
		if err := j.removeObject(ctx, store, o); err != nil {
			return nil, err
		}
		r.Removed, r.Bytes = r.Removed+1, r.Bytes+o.Size
	}
	for _, id := range scraps {
		if err := j.scrap(ctx, store, id); err != nil {
			return nil, err
		}
		r.Scraps++
	}
	r.Took = time.Since(began)
	return r, nil
}

// oldObjects are the objects that are old enough to go, by name, and the ids of old chunks that no
// object has. Only names are among them that the service gives: what somebody has put into the
// store by hand stays.
func (j *Janitor) oldObjects(
	ctx context.Context, s *payloads.Store, now time.Time,
) (old map[string]payloads.Object, scraps []string, err error) {
	// read first: whoever gives chunks a name later has written them lately
	ids := map[string]bool{}
	err = s.Chunks(ctx, func(id string, last time.Time) error {
		if _, err := ulid.ParseStrict(id); err == nil && now.Sub(last) > orphanAge {
			ids[id] = true
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	old = map[string]payloads.Object{}
	err = s.Objects(ctx, func(o payloads.Object) error {
		delete(ids, o.ID)
		if given(o.Name) && now.Sub(o.Stored) > orphanAge {
			old[o.Name] = o
		}
		return nil
	})
	return old, slices.Sorted(maps.Keys(ids)), err
}

// given tells whether a name is one that the service gives.
func given(name string) bool {
	if len(name) < tail {
		return false
	}
	if _, err := ulid.ParseStrict(name); err == nil {
		return true
	}
	return slices.ContainsFunc(givenPrefixes,
		func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// givenPrefixes begin the names that are no ULIDs: by what was moved into the store.
var givenPrefixes = []string{"in-", "signals-", "start-", "reply-", "replay-"}

// mark reads whatever may name an object, until nothing is missing. What is named moves from
// buckets and dead letters into the logs, and from there into the histories, so they are read in
// this order; histories lose nothing meanwhile.
//
// Tasks are not read: what a task names is named by the record that has asked for it. Heartbeats
// are in no stream, and their details count from the record on that holds them.
func (j *Janitor) mark(ctx context.Context, f *finder) error {
	ns := j.o.Namespace
	streams := []string{
		"KV_" + ns.BucketSchedules(), "KV_" + ns.BucketFlows(), "KV_" + ns.BucketTypes(),
		"KV_" + ns.BucketState(), ns.StreamDead(), ns.StreamSignals(),
	}
	for p := range j.o.Partitions {
		streams = append(streams, ns.StreamIn(p))
	}
	for p := range j.o.Partitions {
		streams = append(streams, ns.StreamHistory(p))
	}
	for _, stream := range streams {
		if len(f.missing) == 0 {
			return nil
		}
		err := j.o.Conn.Scan(ctx, stream, natsconn.ReadOptions{BytesPerSecond: sweepRate},
			func(m natsconn.Stored) error { return j.markOne(f, m) })
		if err != nil && !errors.Is(err, natsconn.ErrNoStream) && !errors.Is(err, errNamed) {
			return fmt.Errorf("read what names them in %s: %w", stream, err)
		}
	}
	if err := j.markSoft(f); err != nil && !errors.Is(err, errNamed) {
		return fmt.Errorf("read what names them in runs that are kept softly: %w", err)
	}
	return nil
}

var errNamed = errors.New("all objects are named")

// markOne takes a message.
func (j *Janitor) markOne(f *finder, m natsconn.Stored) error {
	for _, name := range j.spilled(m) {
		delete(f.missing, name)
	}
	body := m.Data
	if _, _, _, err := subject.ParseHistory(m.Subject); err == nil {
		if body, err = schemas.Unpacked(m.Data); err != nil {
			return fmt.Errorf(
				"record %d, %s: no payload goes while it cannot be read; drover verify tells more: %w",
				m.Seq, m.Subject, err)
		}
	}
	f.search(body)
	if strings.HasPrefix(m.Subject, strings.TrimSuffix(j.o.Namespace.AllDead(), ">")) {
		var letter schemas.DeadLetter
		if err := schemas.Unmarshal(m.Data, &letter); err == nil {
			f.search(letter.Body) // in base64, where the letter is JSON
		}
	}
	if len(f.missing) == 0 {
		return errNamed
	}
	return nil
}

// spilled are the names of objects that a message stands for, though it does not name them.
func (j *Janitor) spilled(m natsconn.Stored) []string {
	if p, _, _, err := subject.ParseSignalStored(m.Subject); err == nil {
		return large.SpillNames(p, true, m)
	}
	if p, _, _, _, err := subject.ParseIn(m.Subject); err == nil {
		return large.SpillNames(p, false, m)
	}
	return nil
}

// removeObject removes an object: first its name, so that nobody finds half of it.
func (j *Janitor) removeObject(ctx context.Context, s *payloads.Store, o payloads.Object) error {
	if err := j.o.Before(j.o.Namespace.StreamPayloads(), "object "+o.Name); err != nil {
		return err
	}
	if err := s.Forget(ctx, o); err != nil {
		return err
	}
	return j.scrap(ctx, s, o.ID)
}

func (j *Janitor) scrap(ctx context.Context, s *payloads.Store, id string) error {
	if err := j.o.Before(j.o.Namespace.StreamPayloads(), "chunks "+id); err != nil {
		return err
	}
	if err := s.Scrap(ctx, id); err != nil {
		return err
	}
	return sleep.For(ctx, time.Second/time.Duration(j.o.Rate))
}

// twice are the objects that neither this look has found named nor the one before. It keeps what
// this one has found for the next, unless it comes too soon.
func (j *Janitor) twice(
	now time.Time, f *finder, old map[string]payloads.Object,
) (gone []payloads.Object) {
	j.mu.Lock()
	defer j.mu.Unlock()
	before := j.unnamed
	if before != nil && now.Sub(before.at) < looksApart {
		return nil
	}
	j.unnamed = &unnamed{at: now, names: make(map[string]uint64, len(f.missing))}
	for _, name := range slices.Sorted(maps.Keys(f.missing)) {
		o := old[name]
		j.unnamed.names[name] = o.Seq
		if before != nil && before.names[name] == o.Seq {
			gone = append(gone, o)
		}
	}
	return gone
}

// sweepOn looks at the payloads again and again until ctx ends.
func (j *Janitor) sweepOn(ctx context.Context) {
	for wait := min(looksApart, j.o.SweepEvery); sleep.For(ctx, wait) == nil; wait = j.o.SweepEvery {
		r, err := j.Sweep(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			j.o.Logger.WithField("err", err).
				Warn("large payloads that nothing names could not be looked for; trying again")
		case r.Removed+r.Scraps > 0:
			j.o.Logger.WithField("payloads", r.Removed).WithField("bytes", r.Bytes).
				WithField("uploads", r.Scraps).WithField("took", r.Took.Round(time.Millisecond)).
				Info("large payloads that nothing names were removed")
		}
	}
}
