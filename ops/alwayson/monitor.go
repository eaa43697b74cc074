package alwayson

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas/ops"
)

const (
	// look is how often a record is read although nobody has said that it changed: another master
	// may have written it.
	look = time.Minute
	// askLimit bounds one question.
	askLimit = 10 * time.Second
	// clientTimeout is for how long the client asks on while nobody answers.
	clientTimeout = 10 * time.Second
	// startsAtOnce bounds the starts that are under way, as after a change of the master.
	startsAtOnce = 16
)

// Monitor keeps the always-on workflows of one namespace running.
type Monitor struct {
	o      Options
	bucket string
	client *drover.Client
	turns  chan struct{} // of starts

	// mu guards what follows. It is not held over anything that waits.
	mu      sync.Mutex
	keepers map[string]*keeper // nil unless Run is under way
	keep    func(id string)
	die     context.CancelCauseFunc
}

// New checks the options. It asks nobody.
func New(o Options) (*Monitor, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	client, err := drover.Connect(context.Background(), &drover.Options{
		Conn: o.Conn.NATS(), Namespace: string(o.Namespace), Timeout: clientTimeout,
		Name: "always-on", Logger: o.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("alwayson: %w", err)
	}
	return &Monitor{
		o: o, bucket: o.Namespace.BucketSchedules(), client: client,
		turns: make(chan struct{}, startsAtOnce),
	}, nil
}

// Run keeps them running until ctx ends, and returns nil. It is a task of the master.
func (m *Monitor) Run(ctx context.Context) error {
	ctx, die := context.WithCancelCause(ctx)
	defer die(nil)
	var keeping sync.WaitGroup
	defer keeping.Wait()
	m.mu.Lock()
	m.keepers, m.die = map[string]*keeper{}, die
	m.keep = func(id string) {
		k := &keeper{m: m, id: id, wake: make(chan struct{}, 1)}
		m.keepers[id] = k
		keeping.Go(func() { k.run(ctx) })
	}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.keepers = nil
	}()
	stop, err := m.serve(ctx)
	if err != nil {
		return err
	}
	defer stop()
	defer die(nil) // before stop, which waits for answers
	listed, told := time.Now(), false
	for ctx.Err() == nil {
		wait := look
		ids, err := m.ids(ctx)
		switch {
		case err == nil:
			listed, told = time.Now(), false
		case ctx.Err() == nil:
			wait = retry
			if !told && time.Since(listed) >= look+patience {
				told = true
				m.o.Logger.WithField("err", err).
					Warn("always-on workflows cannot be listed, trying again")
			}
		}
		for _, id := range ids {
			m.ensure(id, false)
		}
		_ = sleep.For(ctx, wait) // the loop looks at ctx
	}
	if cause := context.Cause(ctx); errorsIsCrash(cause) {
		return cause
	}
	return nil
}

// ensure has somebody look after an id. One that does so already is told that the record has
// changed, if it has.
func (m *Monitor) ensure(id string, changed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keepers == nil {
		return
	}
	k := m.keepers[id]
	if k == nil {
		m.keep(id)
		return
	}
	if changed {
		select {
		case k.wake <- struct{}{}:
		default: // it is to look already
		}
	}
}

// leave ends the care for an id, unless it was told to look again.
func (m *Monitor) leave(k *keeper) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(k.wake) > 0 {
		return false
	}
	delete(m.keepers, k.id)
	return true
}

// before is the hook of tests.
func (m *Monitor) before(what string) error {
	err := m.o.Before(what)
	if err != nil {
		err = &crash{err}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.die(err)
	}
	return err
}

// note tells of an operation on a workflow. Who is the one who did it; empty for the monitor.
func (m *Monitor) note(ctx context.Context, kind ops.OperationKind, r *record, who, why string) {
	m.o.Note(ctx, ops.Operation{
		Kind: kind, Subject: r.id(), Identity: who, Reason: why, WorkflowID: r.id(), Run: r.Run,
	})
}
