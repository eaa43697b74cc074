package env

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
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
	// ListLook is how long after a task was put on a list that is looked at: all that come
	// meanwhile cost one look, of two questions.
	ListLook = 15 * time.Second
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
func (e *Env) consumersOf(
	ctx context.Context, list string,
) (made time.Time, all *natsconn.Consumers, err error) {
	stream := e.NS.StreamTasks(list)
	if all, err = e.Reads.Consumers(ctx, stream); err != nil {
		return made, nil, err
	}
	if made, err = e.Reads.StreamMade(ctx, stream); err != nil {
		return made, nil, err
	}
	return made, all, nil
}

// Lacking are the consumers that a list should have, and has not.
func Lacking(all *natsconn.Consumers) (names []string) {
	for _, name := range subject.Consumers() {
		if !all.Has(name) {
			names = append(names, name)
		}
	}
	return names
}

// deleted are the consumers that a list has had, and has no more.
func (e *Env) deleted(list string, made time.Time, all *natsconn.Consumers) []string {
	names := Lacking(all)
	if len(names) == 0 {
		e.looks.sawComplete(list, made)
		return nil
	}
	if !e.looks.wasComplete(list, made) && e.Now().Sub(schemas.At(made)) < listMade {
		return nil
	}
	return names
}

// LookAtList looks in a while whether a list has its consumers, and makes those that are missing.
// It may be called by any goroutine.
func (e *Env) LookAtList(list string, in time.Duration) {
	if !e.looks.start(list) {
		return
	}
	e.Work.Go(func() {
		defer e.looks.end(list)
		for ; sleep.For(e.Background, in) == nil; in = ListLook {
			ctx, cancel := context.WithTimeout(e.Background, ReadTimeout)
			full := e.makeConsumers(ctx, list)
			cancel()
			if full {
				return
			}
		}
	})
}

// makeConsumers makes the consumers that a list lacks. It returns false if that is not known to be
// done.
func (e *Env) makeConsumers(ctx context.Context, list string) bool {
	log := e.Options.Logger.WithField("list", list)
	made, all, err := e.consumersOf(ctx, list)
	if errors.Is(err, natsconn.ErrNoStream) { // whoever puts a task there makes it
		e.looks.sawComplete(list, time.Time{})
		return true
	}
	if err != nil {
		log.WithError(err).Debug("whether the list has its consumers is not known; looking again")
		return false
	}
	lacks, gone := Lacking(all), e.deleted(list, made, all)
	if len(lacks) == 0 {
		return true
	}
	log = log.WithField("consumers", lacks)
	if len(gone) > 0 {
		log.Warn("somebody has deleted consumers of a task list; they are made anew")
	} else {
		log.Debug("a task list that is being made lacks consumers; they are made")
	}
	if err := e.EnsureList(ctx, list); err != nil {
		log.WithError(err).Error("the consumers of a task list cannot be made; trying again")
		return false
	}
	return true
}

// EnsureList makes the stream of a task list, or brings it to what it should be.
func (e *Env) EnsureList(ctx context.Context, list string) error {
	if e.Options.Expendable != nil {
		if err := e.Options.Expendable(e.NS.StreamTasks(list)); err != nil {
			return err
		}
	}
	return topology.EnsureList(ctx, e.Conn, e.NS, list, topology.ListOptions{})
}

// WorkersOf adds up a list's consumers. Each takes a share of the tasks, by priority; a worker that
// is idle waits at all of them, and so counts once.
func (e *Env) WorkersOf(ctx context.Context, i *schemas.TaskListInfo) (exists bool, err error) {
	made, consumers, err := e.consumersOf(ctx, i.List)
	if err == nil {
		filters := make(map[string][]string)
		for _, c := range consumers.Infos {
			if filters[c.Name] = c.Config.FilterSubjects; len(c.Config.FilterSubjects) == 0 {
				filters[c.Name] = []string{c.Config.FilterSubject} // "" for all
			}
			i.Pending += int64(c.NumPending)
			i.Working += int64(c.NumAckPending)
			i.Workers = max(i.Workers, c.NumWaiting)
			if c.Config.MaxDeliver > 0 {
				i.GivingUp = append(i.GivingUp, c.Name)
			}
			if c.Paused {
				i.PausedUntil = max(i.PausedUntil, schemas.At(time.Now().Add(c.PauseRemaining)))
			}
		}
		i.Untaken, i.Missing = e.untaken(i.List, filters), e.deleted(i.List, made, consumers)
	}
	if errors.Is(err, natsconn.ErrNoStream) {
		return false, nil
	}
	return err == nil, err
}

// untaken are the subjects of a list's tasks whose consumer is there and does not take them, nor
// does another one. Of those that are not there, deleted tells.
func (e *Env) untaken(list string, filters map[string][]string) []string {
	var left []string
	for _, of := range []struct {
		consumer string
		priority int
	}{{subject.ConsumerHigh, 1}, {subject.Consumer, 0}, {subject.ConsumerLow, -1}} {
		s := e.NS.Task(list, of.priority)
		taken := filters[of.consumer] == nil
		for _, all := range filters {
			taken = taken || slices.ContainsFunc(all,
				func(f string) bool { return f == "" || subject.Overlap(f, s) })
		}
		if !taken {
			left = append(left, s)
		}
	}
	return left
}
