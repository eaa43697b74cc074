package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/diskspace"
	"github.com/droverhq/drover/schemas"
)

const (
	// leaveTimeout bounds taking the node's record away.
	leaveTimeout = time.Second
	// nodeNames is how many names are tried for a node that was given none.
	nodeNames = 64
)

// namesServed are the namespaces that a node serves now, for its record.
type namesServed struct {
	mu    sync.Mutex
	names []string
}

// add puts a name on the list until the returned function is called.
func (s *namesServed) add(name string) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = append(s.names, name)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if i := slices.Index(s.names, name); i >= 0 {
			s.names = slices.Delete(s.names, i, i+1)
		}
	}
}

func (s *namesServed) sorted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	// in a recycle one may be there twice
	return slices.Compact(slices.Sorted(slices.Values(s.names)))
}

// join gives the node its name, the same in all namespaces, and writes its record. A name that was
// given is taken as it is: a server that is started again after a crash must not wait until its
// former self is forgotten. Any other is the host's, with a number after it while a live node has
// it.
func (n *node) join(ctx context.Context, home subject.Namespace) error {
	var err error
	if n.register, err = nodes.Open(n.conn, nodes.Options{Logger: n.log}); err != nil {
		return err
	}
	rec := n.record(home)
	if rec.Node != "" {
		n.member, err = n.register.Join(ctx, rec, nodes.JoinOptions{Given: true, Fill: n.fill})
		return err
	}
	host := cmp.Or(rec.Host, "node")
	for i := range nodeNames {
		rec.Node = host
		if i > 0 {
			rec.Node = fmt.Sprintf("%s-%d", host, i+1)
		}
		n.member, err = n.register.Join(ctx, rec, nodes.JoinOptions{Fill: n.fill})
		if !errors.Is(err, nodes.ErrTaken) {
			return err
		}
	}
	return fmt.Errorf("%d nodes named %s-… are alive: name this one by Options.Node",
		nodeNames, host)
}

// record is what does not change about this node.
func (n *node) record(home subject.Namespace) schemas.NodeRecord {
	rec := schemas.NodeRecord{
		Node: n.o.Node, PID: os.Getpid(), Boot: rand.Text(), Namespace: string(home),
		Roles: n.o.Roles, Version: n.o.Version, Profile: "external",
	}
	if host, err := os.Hostname(); err == nil && subject.ValidateID("host name", host) == nil {
		rec.Host = host
	}
	if n.server == nil {
		return rec
	}
	rec.Boot, rec.StoreID, rec.Profile = n.server.Boot(), n.server.StoreID(), n.server.Profile().
		String()
	switch {
	case n.server.Memory():
	case n.server.Profile() == embedded.ProfileDev:
		rec.Sync = cmp.Or(n.o.Embedded.SyncInterval, time.Second).String()
	default:
		rec.Sync = "always"
	}
	return rec
}

// fill is what does change.
func (n *node) fill(rec *schemas.NodeRecord) {
	rec.Namespaces = n.served.sorted()
	rec.RolesSince = schemas.Timestamp(n.since.Load())
	nc := n.conn.NATS()
	rec.Server, rec.ServerVersion, rec.URL = nc.ConnectedServerId(), nc.ConnectedServerVersion(), n.conn.URL()
	if n.server == nil {
		return
	}
	rec.URL = n.server.ClientURL()
	if !n.server.Memory() {
		rec.DiskFree, rec.DiskTotal = diskspace.Of(n.server.StoreDir())
		rec.InodesFree, rec.InodesTotal = diskspace.Inodes(n.server.StoreDir())
	}
}

// begin is what comes before the roles: the recovery, and with [AfterCrashHalt] the word of an
// operator before that. It returns false if the node is to stop.
func (n *node) begin(ctx context.Context) bool {
	if former := n.member.Former(); former != nil {
		log := n.log.WithField("node", n.member.Name()).WithField("pid", former.PID).
			WithField("lastHeard", former.HeardAt().UTC().Format(time.RFC3339))
		if n.o.AfterCrash == AfterCrashHalt {
			log.Errorf(
				"unexpected shutdown: an earlier self of this node did not end properly. Its "+
					"roles wait for: drover node ack %s", n.member.Name())
			if !n.halt(ctx) {
				return false
			}
		} else {
			log.Warn("unexpected shutdown: an earlier self of this node did not end properly; recovering")
		}
		n.write(ctx, schemas.NodeRecovering)
	}
	n.began(ctx, time.Time{})
	led, err := n.home.keeper.Recover(ctx)
	if err != nil {
		return false
	}
	n.log.WithField("node", n.member.Name()).WithField("master", led).Debug("recovered")
	return true
}

// halt waits for the word of an operator. A node that is stopped meanwhile keeps its record: it
// waits again next time.
func (n *node) halt(ctx context.Context) bool {
	n.halted.Store(true)
	select {
	case <-n.acked:
		n.halted.Store(false)
		return true
	case <-ctx.Done():
		return false
	}
}

// write changes the node's status in its record. If that fails, the next heartbeat does it.
func (n *node) write(ctx context.Context, s schemas.NodeStatus) {
	if n.member == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if err := n.member.Set(ctx, s); err != nil {
		n.log.WithError(err).Debug("the node's status is not written now")
	}
}

// unacked tells whether the word of an operator about an earlier self is still to come: also of a
// node that does not come to wait for it.
func (n *node) unacked() bool {
	return n.o.AfterCrash == AfterCrashHalt && n.member.Former() != nil && !closed(n.acked)
}

// leave takes the record away, unless what it says of this node is the truth: that it did not end
// properly.
func (n *node) leave() {
	if n.member == nil {
		return
	}
	n.telling.Wait()
	if n.failed || n.unacked() || n.unwritable() {
		n.member.Close()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := n.member.Leave(ctx); err != nil {
		n.log.WithError(err).Warn(
			"the node's record is not taken away; its next start will look like one after a crash")
	}
}
