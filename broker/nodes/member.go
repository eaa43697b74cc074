package nodes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/bucketkey"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// JoinOptions of [Registry.Join]. The zero value is good.
type JoinOptions struct {
	// Given says that the name is this node's whoever had it before. Defaults to false: it must not
	// be a live node's.
	Given bool
	// Fill brings what changes in a record up to date: namespaces, the server, free space. It is
	// called before each write, by one goroutine at a time, and must be quick. Defaults to nothing.
	Fill func(*schemas.NodeRecord)
}

// joinPatience is how long another write of the record may be under way: one of an earlier self, in
// a cluster that had no majority and has neither stored nor dropped it.
const (
	joinPatience = 10 * time.Second
	joinPause    = 100 * time.Millisecond
)

// Member is the record of this process. It writes itself again at each heartbeat until
// [Member.Leave] or [Member.Close]. All methods may be called by several goroutines.
type Member struct {
	registry *Registry
	fill     func(*schemas.NodeRecord)
	former   *Info
	stop     context.CancelFunc
	ended    chan struct{} // closed when nothing writes by itself any more

	mu   sync.Mutex // also held while the record is written, so that writes keep their order
	rec  schemas.NodeRecord
	rev  uint64 // of the last write that is known to be stored
	lost bool   // another process has the name
}

// Join writes the record of this process and keeps it fresh. Node, Boot and Namespace are required;
// Status, Since, Started, LastActive and Heartbeat are set here. The status is Recovering, or
// Unexpected shutdown if there is a record of an earlier self.
//
// If a live node has the name and it was not given, the error wraps [ErrTaken]: try another name. A
// node is an earlier self, however fresh its record, if it ran another boot of the same embedded
// store: the store's file lock is ours.
func (r *Registry) Join(
	ctx context.Context, rec schemas.NodeRecord, o JoinOptions,
) (*Member, error) {
	if err := subject.ValidateID("Node", rec.Node); err != nil {
		return nil, fmt.Errorf("nodes: %w: %w", ErrInvalidOptions, err)
	}
	if rec.Boot == "" || rec.Namespace == "" {
		return nil, fmt.Errorf("nodes: %w: the record of %s needs a Boot and a Namespace",
			ErrInvalidOptions, rec.Node)
	}
	rec.Started, rec.Heartbeat = schemas.At(time.Now()), schemas.Duration(r.opts.Heartbeat)
	m := &Member{registry: r, fill: o.Fill, rec: rec, ended: make(chan struct{})}
	if m.fill == nil {
		m.fill = func(*schemas.NodeRecord) {}
	}
	if err := m.join(ctx, o.Given); err != nil {
		return nil, fmt.Errorf("nodes: join as %s: %w", rec.Node, err)
	}
	var beating context.Context
	beating, m.stop = context.WithCancel(context.Background())
	go m.beat(beating)
	return m, nil
}

func (m *Member) join(ctx context.Context, given bool) error {
	var err error
	for tries, until := 0, time.Now().Add(joinPatience); tries < attempts; {
		var i *Info
		if i, err = m.registry.find(ctx, bucketkey.Escape(m.rec.Node)); err != nil {
			return err
		}
		mine := i.Boot == m.rec.Boot // an acknowledgement was lost
		switch {
		case !mine:
			m.former = nil
		case m.former == nil && i.Status == schemas.NodeUnexpectedShutdown:
			m.former = i // what an earlier try of this start has found
		}
		if !i.Gone && !i.Malformed && !mine {
			dead := i.StoreID != "" && i.StoreID == m.rec.StoreID
			if !given && !dead && m.registry.Alive(i, m.registry.Now(ctx)) {
				return fmt.Errorf("%w: that on host %s, process %d", ErrTaken, i.Host, i.PID)
			}
			m.former = i
		}
		m.rec.Status = schemas.NodeRecovering
		if m.former != nil {
			m.rec.Status = schemas.NodeUnexpectedShutdown
		}
		m.rec.Since = schemas.At(time.Now())
		m.rev = i.Revision
		switch err = m.store(ctx); {
		case err == nil:
			return nil
		case errors.Is(err, natsconn.ErrInFlight) && time.Now().Before(until) && sleep.For(ctx, joinPause) == nil:
		case errors.Is(err, natsconn.ErrWrongSequence), errors.Is(err, natsconn.ErrTimeout):
			tries++
		default:
			return err
		}
	}
	return err
}

// Former is the record of an earlier self that was found on joining; nil if it had ended properly,
// or never was.
func (m *Member) Former() *Info { return m.former }

// Name is the node's name.
func (m *Member) Name() string { return m.rec.Node }

// Boot tells the starts of a node apart.
func (m *Member) Boot() string { return m.rec.Boot }

// Status is where this node stands by its own account.
func (m *Member) Status() schemas.NodeStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rec.Status
}

// Set changes the status and writes it. If it cannot be written now, a later heartbeat does it.
func (m *Member) Set(ctx context.Context, s schemas.NodeStatus) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rec.Status != s {
		m.rec.Status, m.rec.Since = s, schemas.At(time.Now())
	}
	if err := m.put(ctx); err != nil {
		return fmt.Errorf("nodes: %s is %s: %w", m.rec.Node, s, err)
	}
	return nil
}

// Refresh reads the record: the master may have made this node Ready. It returns the status.
func (m *Member) Refresh(ctx context.Context) (schemas.NodeStatus, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, err := m.registry.find(ctx, bucketkey.Escape(m.rec.Node))
	if err != nil {
		return m.rec.Status, fmt.Errorf("nodes: %w", err)
	}
	if i.Boot == m.rec.Boot {
		m.adopt(i)
	}
	return m.rec.Status, nil
}

// Leave takes the record away: the end of a node that has handed over its work. It returns nil if
// the record is another process's by now.
func (m *Member) Leave(ctx context.Context) error {
	m.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	for range attempts {
		err := m.registry.remove(ctx, bucketkey.Escape(m.rec.Node), m.rev)
		if !errors.Is(err, ErrChanged) && !errors.Is(err, natsconn.ErrTimeout) || ctx.Err() != nil {
			return err
		}
		i, readErr := m.registry.find(ctx, bucketkey.Escape(m.rec.Node))
		if readErr != nil {
			return fmt.Errorf("nodes: leave: %w", readErr)
		}
		if i.Boot != m.rec.Boot {
			return nil
		}
		m.rev = i.Revision
	}
	return fmt.Errorf("nodes: leave: %w: %s", ErrChanged, m.rec.Node)
}

// Close ends the heartbeats and leaves the record, as a crash does.
func (m *Member) Close() {
	m.stop()
	<-m.ended
}

// beat writes the record again and again.
func (m *Member) beat(ctx context.Context) {
	defer close(m.ended)
	tick := time.NewTicker(m.registry.opts.Heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		m.mu.Lock()
		limit, cancel := context.WithTimeout(ctx, max(m.registry.opts.Heartbeat, time.Second))
		err := m.put(limit)
		cancel()
		m.mu.Unlock()
		if err != nil && ctx.Err() == nil && !errors.Is(err, ErrTaken) {
			m.registry.opts.Logger.WithField("err", err).
				Debug("the node's heartbeat is not stored, trying again")
		}
	}
}

// put writes the record over what there is, unless another process has the name.
func (m *Member) put(ctx context.Context) error {
	var err error
	for range attempts {
		if err = m.store(ctx); !errors.Is(err, natsconn.ErrWrongSequence) {
			return err
		}
		i, readErr := m.registry.find(ctx, bucketkey.Escape(m.rec.Node))
		if readErr != nil {
			return readErr
		}
		if err := m.met(ctx, i); err != nil {
			return err
		}
	}
	return err
}

// met takes note of what stands in this node's key.
func (m *Member) met(ctx context.Context, i *Info) error {
	log := m.registry.opts.Logger.WithField("node", m.rec.Node)
	if !i.Gone && !i.Malformed && i.Boot != m.rec.Boot && m.registry.Alive(i, m.registry.Now(ctx)) {
		if !m.lost {
			m.lost = true
			log.Errorf(
				"another process, %d on host %s, has taken the name of this node: give each node its own with --node",
				i.PID, i.Host)
		}
		return fmt.Errorf("%w: process %d on host %s", ErrTaken, i.PID, i.Host)
	}
	m.lost = false
	if i.Boot == m.rec.Boot {
		if i.Status == schemas.NodeNotResponding {
			log.Warn("this node was taken for one that does not respond; it goes on")
		}
		m.adopt(i)
	}
	m.rev = i.Revision
	return nil
}

// adopt takes over what another wrote into this node's record: a revision, and that it is Ready.
func (m *Member) adopt(i *Info) {
	m.rev = i.Revision
	if m.rec.Status == schemas.NodeRecovering && i.Status == schemas.NodeReady {
		m.rec.Status, m.rec.Since = i.Status, i.Since
	}
}

// store writes the record at the known revision.
func (m *Member) store(ctx context.Context) error {
	m.fill(&m.rec)
	m.rec.LastActive = schemas.At(time.Now())
	rev, err := m.registry.write(ctx, &m.rec, m.rev)
	if err == nil {
		m.rev = rev
	}
	return err
}
