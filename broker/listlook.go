package broker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// Somebody may delete a consumer of a task list. The tasks of its priority then go to nobody, and
// whoever waits for them with plain NATS does not make it anew, as the library's workers do. So a
// broker looks at a list some time after a task was put there, and at once when it is asked how the
// list stands, and makes what is missing anew. The stream has kept the tasks.
//
// A list that is being made lacks consumers, too: its stream comes first. Nobody is told that they
// were deleted unless the list was seen whole, or is older than making one takes.

const (
	// listLook is how long after a task was put on a list that is looked at: all that come
	// meanwhile cost one look, of two questions.
	listLook = 15 * time.Second
	// listMade is how old a list is that should be whole.
	listMade = time.Minute
)

// listLooks is what a broker knows of lists, by their names. The zero value is ready.
type listLooks struct {
	mu       sync.Mutex
	under    map[string]bool      // that will be looked at, or are
	complete map[string]time.Time // when the stream was made that was seen with all its consumers
}

// start tells whether nobody is about to look at a list.
func (l *listLooks) start(list string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.under == nil {
		l.under, l.complete = make(map[string]bool), make(map[string]time.Time)
	}
	begins := !l.under[list]
	l.under[list] = true
	return begins
}

func (l *listLooks) end(list string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.under, list)
}

// sawComplete notes that a list had all its consumers; gone, with the zero time, that there is
// none.
func (l *listLooks) sawComplete(list string, made time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if made.IsZero() {
		delete(l.complete, list)
		return
	}
	if l.complete == nil {
		l.complete = make(map[string]time.Time)
	}
	l.complete[list] = made
}

// wasComplete tells whether the list whose stream was made then was seen with all its consumers.
func (l *listLooks) wasComplete(list string, made time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, seen := l.complete[list]
	return seen && at.Equal(made)
}

// consumersOf lists the consumers of a list, and tells when its stream was made. A list that is not
// there is [natsconn.ErrNoStream].
func (b *env) consumersOf(
	ctx context.Context,
	list string,
) (made time.Time, all *natsconn.Consumers, err error) {
	stream := b.ns.StreamTasks(list)
	if all, err = b.reads.Consumers(ctx, stream); err != nil {
		return made, nil, err
	}
	if made, err = b.reads.StreamMade(ctx, stream); err != nil {
		return made, nil, err
	}
	return made, all, nil
}

// lacking are the consumers that a list should have, and has not.
func lacking(all *natsconn.Consumers) (names []string) {
	for _, name := range subject.Consumers() {
		if !all.Has(name) {
			names = append(names, name)
		}
	}
	return names
}

// deleted are the consumers that a list has had, and has no more.
func (b *env) deleted(list string, made time.Time, all *natsconn.Consumers) []string {
	names := lacking(all)
	if len(names) == 0 {
		b.looks.sawComplete(list, made)
		return nil
	}
	if !b.looks.wasComplete(list, made) && b.now().Sub(schemas.At(made)) < listMade {
		return nil
	}
	return names
}

// lookAtList looks in a while whether a list has its consumers, and makes those that are missing.
// It may be called by any goroutine.
func (b *env) lookAtList(list string, in time.Duration) {
	if !b.looks.start(list) {
		return
	}
	b.wg.Go(func() {
		defer b.looks.end(list)
		for ; sleep.For(b.ctx, in) == nil; in = listLook {
			ctx, cancel := context.WithTimeout(b.ctx, readTimeout)
			full := b.makeConsumers(ctx, list)
			cancel()
			if full {
				return
			}
		}
	})
}

// makeConsumers makes the consumers that a list lacks. It returns false if that is not known to be
// done.
func (b *env) makeConsumers(ctx context.Context, list string) bool {
	log := b.o.Logger.WithField("list", list)
	made, all, err := b.consumersOf(ctx, list)
	if errors.Is(err, natsconn.ErrNoStream) { // whoever puts a task there makes it
		b.looks.sawComplete(list, time.Time{})
		return true
	}
	if err != nil {
		log.WithError(err).Debug("whether the list has its consumers is not known; looking again")
		return false
	}
	lacks, gone := lacking(all), b.deleted(list, made, all)
	if len(lacks) == 0 {
		return true
	}
	log = log.WithField("consumers", lacks)
	if len(gone) > 0 {
		log.Warn("somebody has deleted consumers of a task list; they are made anew")
	} else {
		log.Debug("a task list that is being made lacks consumers; they are made")
	}
	if err := b.ensureList(ctx, list); err != nil {
		log.WithError(err).Error("the consumers of a task list cannot be made; trying again")
		return false
	}
	return true
}
