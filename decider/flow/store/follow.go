package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/bucketkey"
)

// wholeEvery is how many looks at what is new come before one at everything: of a bucket that was
// made anew, or of messages that were removed, the former tells nothing.
const wholeEvery = 20

// FollowOptions of [Store.Follow]. The zero value is usable.
type FollowOptions struct {
	// Every is how often the bucket is looked at. Each look is one small question, which a replica
	// may answer. Defaults to 500 ms.
	Every time.Duration
	// Trouble is told why a look has failed, once for each reason, and nil when one has succeeded
	// again. Defaults to nobody.
	Trouble func(error)
}

// Follow calls tell with the names of the flows that runs may have, sorted, at first and whenever
// they change, until ctx is done. A name whose current key was deleted stays: runs that are open go
// on with the version that they began with. It returns early with a [natsconn.RefusedError] alone;
// other failures pass.
//
// Considered: a consumer of the bucket, which would tell sooner. But a right to make consumers is
// one to have the server publish anywhere, and deciders are not trusted with that.
func (s *Store) Follow(ctx context.Context, o *FollowOptions, tell func(names []string)) error {
	if o == nil {
		o = &FollowOptions{}
	}
	every, trouble := o.Every, o.Trouble
	if every <= 0 {
		every = 500 * time.Millisecond
	}
	if trouble == nil {
		trouble = func(error) {}
	}
	f, said := &follower{s: s}, ""
	tick := time.NewTicker(every)
	defer tick.Stop()
	for first := true; ; {
		changed, err := f.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if _, refused := errors.AsType[*natsconn.RefusedError](err); refused {
			return err
		}
		switch {
		case err != nil && err.Error() != said:
			said = err.Error()
			trouble(err)
		case err == nil && said != "":
			said = ""
			trouble(nil)
		}
		if err == nil && (changed || first) {
			first = false
			tell(slices.Sorted(maps.Keys(f.names)))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// follower knows the names that the bucket had at its last look.
type follower struct {
	s     *Store
	names map[string]bool
	last  uint64 // sequence up to which the bucket was seen
	looks int    // since everything was looked at; 0 if it was not yet
}

// look reads what is new; now and then, and after a failure, everything.
func (f *follower) look(ctx context.Context) (changed bool, err error) {
	looks, names, last := f.looks, maps.Clone(f.names), f.last
	if looks >= wholeEvery {
		looks = 0
	}
	if looks == 0 {
		names, last = map[string]bool{}, 0
	}
	f.looks = 0 // until this look has succeeded
	for more := true; more; {
		var page []natsconn.Stored
		page, more, err = f.s.conn.BatchGet(ctx, "KV_"+f.s.bucket,
			"$KV."+f.s.bucket+"."+string(Flow)+".*."+current, last+1, listPage)
		if err != nil {
			return false, f.s.explain(err)
		}
		for _, m := range page {
			last = m.Seq
			if name, ok := f.name(m.Subject); ok && len(names) < 2*MaxNames {
				// deployments stop at half of that
				names[name] = true
			}
		}
		more = more && len(page) > 0
	}
	changed = !maps.Equal(names, f.names)
	f.names, f.last, f.looks = names, last, looks+1
	return changed, nil
}

func (f *follower) name(subject string) (string, bool) {
	key := strings.TrimPrefix(subject, "$KV."+f.s.bucket+"."+string(Flow)+".")
	return bucketkey.Unescape(strings.TrimSuffix(key, "."+current))
}
