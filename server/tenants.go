package server

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

const (
	// lookEvery is how often the names of the namespaces are asked for, one question however many
	// there are.
	lookEvery = time.Second
	// studyEvery is how often each of them is looked at: for those that are marked for deletion by
	// somebody whose word has not come through, and for those that could not be served.
	studyEvery = 10 * time.Second
	// openings is how many namespaces are opened at once, so that those that are served already get
	// their share.
	openings = 4
)

// tenants are the namespaces that a node serves, its home among them. Its fields belong to the
// goroutine that watches.
type tenants struct {
	node    *node
	log     logrus.FieldLogger
	served  map[subject.Namespace]*tenant
	names   []subject.Namespace // that were found when each was looked at last
	studied time.Time           // when that was
	said    string              // the last complaint
	unread  string              // the last one about some of them
	word    chan struct{}       // gets a value when each is to be looked at
	opening chan struct{}
	wg      sync.WaitGroup
}

func newTenants(n *node) *tenants {
	home := n.home
	return &tenants{
		node: n, log: n.log, served: map[subject.Namespace]*tenant{home.space.Name: home},
		word: make(chan struct{}, 1), opening: make(chan struct{}, openings),
	}
}

// watch takes up namespaces that appear and drops those that go, until ctx ends and those that it
// began have ended. It calls ready once, when those that it has found at first are served.
func (s *tenants) watch(ctx context.Context, ready func()) error {
	defer s.wg.Wait()
	sub, err := s.node.conn.Subscribe(schemas.NamespacesChanged, "",
		func(natsconn.Msg) { s.hint() })
	if err == nil {
		defer sub.Close()
	} // without that right it takes a little longer
	s.wg.Go(func() { s.awaitHome(ctx) })
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for told := true; ; {
		err := s.look(ctx, told)
		if ctx.Err() != nil {
			return nil
		}
		s.complain(err)
		if ready != nil && s.await(ctx) {
			ready()
			ready = nil
		}
		told = false
		select {
		case <-tick.C:
		case <-s.word:
			told = true
		case <-ctx.Done():
			return nil
		}
	}
}

// await waits, for as long as the ready line may wait, until the namespaces are served, and on a
// NATS server of its own have all their owners. It reports false if the server is to stop, or the
// home has failed, which ends it.
func (s *tenants) await(ctx context.Context) bool {
	limit, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for _, t := range s.served {
		select {
		case <-t.built:
			t.awaitBroker(limit)
		case <-t.ended:
		case <-limit.Done():
		}
	}
	home := s.node.home
	return ctx.Err() == nil && !(home.over() && home.failed)
}

// awaitHome hints when the home has been dropped and is over, as begin does for the others: it may
// be there anew.
func (s *tenants) awaitHome(ctx context.Context) {
	select {
	case <-s.node.home.ended:
		s.hint()
	case <-ctx.Done():
	}
}

// hint has each namespace looked at soon.
func (s *tenants) hint() {
	select {
	case s.word <- struct{}{}:
	default:
	}
}

// complain logs what keeps the node from looking, once for each kind.
func (s *tenants) complain(err error) {
	switch {
	case err == nil:
		s.said = ""
	case err.Error() != s.said:
		s.said = err.Error()
		s.log.WithError(err).
			Warn("the namespaces cannot be listed now; those that are known are served")
	}
}

// look compares what is there with what is served.
func (s *tenants) look(ctx context.Context, told bool) error {
	maps.DeleteFunc(s.served, func(_ subject.Namespace, t *tenant) bool { return t.over() })
	if s.said != "" && time.Since(s.studied) < studyEvery {
		return errors.New(s.said) // it may not be allowed at all
	}
	names, err := topology.Names(ctx, s.node.conn)
	if err == nil && !told && slices.Equal(names, s.names) && !s.parting() &&
		time.Since(s.studied) < studyEvery {
		return nil
	}
	s.studied = time.Now()
	if err != nil {
		return err
	}
	return s.study(ctx, names)
}

// parting tells whether a tenant is about to end, after which its namespace may be there anew.
func (s *tenants) parting() bool {
	for _, t := range s.served {
		if t.leaving() {
			return true
		}
	}
	return false
}

func (s *tenants) study(ctx context.Context, names []subject.Namespace) error {
	list, err := topology.List(ctx, s.node.conn, s.log)
	unread, some := errors.AsType[*topology.UnreadError](err)
	switch {
	case err == nil:
		s.unread = ""
	case !some || ctx.Err() != nil:
		return err
	case err.Error() != s.unread:
		s.unread = err.Error()
		s.log.WithError(err).Warn(
			"not all namespaces can be looked at now; the others are, and those that are known are served")
	}
	s.names = names
	found := make(map[subject.Namespace]*topology.Info, len(list))
	for _, i := range list {
		if !i.Deleting {
			found[i.Name] = i
		}
	}
	for name, t := range s.served {
		if some && slices.Contains(unread.Names, name) {
			continue // it may be there
		}
		if i := found[name]; i == nil || !t.serves(i) {
			if !t.leaving() {
				s.log.WithField("namespace", name).
					Info("the namespace is deleted or was changed; letting go of it")
			}
			t.drop()
		}
	}
	for name, i := range found {
		if s.served[name] == nil {
			s.begin(ctx, i)
		}
	}
	return nil
}

// begin serves a namespace until it is dropped, ctx ends, or it fails; the next study of it tries
// again then.
func (s *tenants) begin(ctx context.Context, i *topology.Info) {
	t := newTenant(s.node, s.log.WithField("namespace", i.Name), nil)
	t.seen = i
	s.served[i.Name] = t
	s.wg.Go(func() {
		err := s.serve(ctx, t)
		close(t.ended)
		switch {
		case t.leaving():
			s.hint() // it may be there anew
		case err == nil, ctx.Err() != nil:
		case errors.Is(err, topology.ErrDeleting), errors.Is(err, topology.ErrNoNamespace):
			t.log.WithError(err).Info("the namespace was deleted before it could be served")
		default:
			t.log.WithError(err).Errorf("the namespace cannot be served; trying again within %v",
				studyEvery)
		}
	})
}

func (s *tenants) serve(ctx context.Context, t *tenant) error {
	var err error
	if t.conn, err = t.generation.dial(ctx, "drover server "+string(t.seen.Name)); err != nil {
		return err
	}
	defer t.conn.Close()
	if err := s.open(ctx, t); err != nil {
		return err
	}
	close(t.built)
	t.log.WithField("partitions", t.space.Partitions).Info("the namespace is served")
	return t.run(ctx)
}

func (s *tenants) open(ctx context.Context, t *tenant) error {
	select {
	case s.opening <- struct{}{}:
		defer func() { <-s.opening }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := t.open(ctx, topology.Options{
		Namespace: string(t.seen.Name), Memory: t.seen.Memory, Synced: s.node.single(),
	}); err != nil {
		return err
	}
	return t.build()
}
