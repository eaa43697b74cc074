// Package namespaces serves the requests of clients to create, list, describe and delete namespaces,
// so that clients need no right to JetStream. What it does is in package topology.
package namespaces

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/micro"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/schemas"
)

const (
	// answerWithin is how long a deletion may take before its requester hears that it goes on.
	answerWithin = time.Second
	// requestLimit bounds the others. On a cluster each stream waits for an election.
	requestLimit = 2 * time.Minute
	maxPage      = 500
)

// ServeOptions of [Serve].
type ServeOptions struct {
	// Memory, Replicas and Synced are what a namespace is made with that does not say otherwise.
	// Default to those of [topology.Options].
	Memory   bool
	Replicas int
	Synced   bool
	// Node is shown by the micro service. Defaults to none.
	Node string
	// Version is shown by the micro service, and noted in what is made. It must be a semantic
	// version. Defaults to "0.0.0".
	Version string
	// Logger is told what is made and deleted, and why. Defaults to none.
	Logger logrus.FieldLogger
}

// Serve answers requests to create, list, describe and delete namespaces until ctx ends, and
// returns nil then. Any number of processes may serve: each request goes to one of them. conn
// should be its own, and be closed after it: the micro service ends with its connection, because to
// stop it in order would drain it first and nobody is there to answer then.
func Serve(ctx context.Context, conn *natsconn.Conn, o ServeOptions) error {
	o.Version = cmp.Or(o.Version, "0.0.0")
	o.Logger = logx.Or(o.Logger)
	s := &service{conn: conn, o: o, ctx: ctx, deletions: map[subject.Namespace]*job{}}
	m, err := micro.AddService(conn.NATS(), micro.Config{
		Name: "drover-server", Version: o.Version,
		Description: "Drover: the namespaces of this account",
		Metadata:    map[string]string{"node": o.Node},
	})
	if err != nil {
		return fmt.Errorf("namespaces: register the service: %w", err)
	}
	for _, v := range []struct {
		verb, about string
		serve       func(*service, *schemas.NamespaceRequest) (any, error)
	}{
		{"create", "make a namespace, or bring it to what the request says: NamespaceRequest → " +
			"NamespaceResponse", (*service).create},
		{"list", "all namespaces: NamespaceRequest → NamespaceListResponse", (*service).list},
		{"describe", "a namespace with its usage: NamespaceRequest → NamespaceResponse", (*service).describe},
		{"delete", "delete a namespace with all that it holds; repeat it until nothing is left: " +
			"NamespaceRequest → NamespaceResponse", (*service).delete},
	} {
		handler := micro.HandlerFunc(func(r micro.Request) {
			s.background(func() { s.answer(r, v.serve) })
		})
		err := m.AddEndpoint(v.verb, handler,
			micro.WithEndpointSubject(schemas.NamespaceSubject(v.verb)),
			micro.WithEndpointMetadata(map[string]string{"about": v.about}))
		if err != nil {
			return fmt.Errorf("namespaces: register the verb %s: %w", v.verb, err)
		}
	}
	<-ctx.Done()
	s.end()
	return nil
}

// service is one call of Serve.
type service struct {
	conn *natsconn.Conn
	o    ServeOptions
	ctx  context.Context // of Serve: a deletion outlives the request that began it
	wg   sync.WaitGroup

	mu        sync.Mutex
	ended     bool
	deletions map[subject.Namespace]*job // under way
}

// job is a deletion under way.
type job struct {
	done  chan struct{}
	force bool
	made  schemas.Timestamp
	err   error // after done
}

// background runs fn unless the service has ended: a request may still come in while it stops, and
// its sender asks again.
func (s *service) background(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.wg.Go(fn)
	}
}

func (s *service) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.wg.Wait()
}

// answer serves one request.
func (s *service) answer(
	r micro.Request, serve func(*service, *schemas.NamespaceRequest) (any, error),
) {
	var q schemas.NamespaceRequest
	var a any
	err := natsconn.Decode(natsconn.Header(r.Headers()), r.Data(), &q)
	if what := natsconn.GivenTo(r); what != "" {
		err = natsconn.NoRequest(what)
	} else if err != nil {
		err = schemas.Errorf(schemas.CodeInvalid, "the request cannot be read: %v", err)
	} else {
		a, err = serve(s, &q)
	}
	if !subject.Answerable(r.Reply()) {
		return
	}
	if err != nil {
		a = &schemas.NamespaceResponse{V: schemas.Version, Error: wireError(err)}
	}
	encode := schemas.MarshalJSON
	if r.Headers().Get(schemas.ContentTypeHeader) == schemas.ContentTypeMsgpack {
		encode = schemas.Marshal
	}
	body, err := encode(a)
	if err == nil {
		err = r.Respond(body)
	}
	if err != nil {
		s.o.Logger.WithError(err).Warn("a request about namespaces cannot be answered")
	}
}

// wireErrors is the one table from the errors of package topology to codes. The texts tell the way out.
var wireErrors = []struct {
	err  error
	code schemas.Code
}{
	{topology.ErrInvalidOptions, schemas.CodeInvalid},
	{subject.ErrInvalidID, schemas.CodeInvalid},
	{topology.ErrNoNamespace, schemas.CodeNotFound},
	{topology.ErrOpenRuns, schemas.CodeConflict},
	{topology.ErrDeleting, schemas.CodeConflict},
	{topology.ErrConflict, schemas.CodeConflict},
	{topology.ErrRefused, schemas.CodeLimit},
	{topology.ErrServerTooOld, schemas.CodeUnsupported},
	{topology.ErrNoJetStream, schemas.CodeUnsupported},
}

func wireError(err error) *schemas.Error {
	if e, ok := errors.AsType[*schemas.Error](err); ok {
		return e
	}
	text := strings.TrimPrefix(err.Error(), "topology: ")
	for _, w := range wireErrors {
		if errors.Is(err, w.err) {
			return schemas.Errorf(w.code, "%s", text)
		}
	}
	return schemas.Errorf(schemas.CodeUnavailable, "%s", text).WithHint("try again")
}

func (s *service) create(q *schemas.NamespaceRequest) (any, error) {
	if q.Name == "" {
		return nil, schemas.Errorf(schemas.CodeInvalid, "the name is missing").InField("name")
	}
	ctx, cancel := context.WithTimeout(s.ctx, requestLimit)
	defer cancel()
	o := topology.Options{
		Namespace: q.Name, Partitions: q.Partitions, Replicas: cmp.Or(q.Replicas, s.o.Replicas),
		Memory: s.o.Memory, Synced: s.o.Synced, MaxBytes: q.MaxBytes, Compression: q.Compression,
		RequireTypes: q.RequireTypes, Description: q.Description, FlowRetention: q.FlowRetention,
		Retention: q.Retention, Version: s.o.Version, Logger: s.o.Logger,
	}
	// The default of this server is for new ones: one that exists keeps its storage and its copies.
	have, err := topology.Lookup(ctx, s.conn, subject.Namespace(q.Name))
	switch {
	case err == nil:
		o.Memory, o.Replicas = have.Memory, q.Replicas
	case !errors.Is(err, topology.ErrNoNamespace):
		return nil, err
	}
	if _, err := topology.Ensure(ctx, s.conn, o); err != nil {
		return nil, s.half(ctx, q.Name, err)
	}
	// It is a hint to the servers, they look by themselves too.
	_ = s.conn.Publish(schemas.NamespacesChanged, nil, []byte(q.Name))
	i, err := topology.Lookup(ctx, s.conn, subject.Namespace(q.Name))
	return response(i), err
}

// half adds to the refusal of a creation what is left of it, if something is.
func (s *service) half(ctx context.Context, name string, err error) error {
	if !errors.Is(err, topology.ErrRefused) {
		return err
	}
	if i, unknown := topology.Describe(ctx, s.conn, subject.Namespace(name)); unknown != nil ||
		!i.Incomplete {
		return err
	}
	return wireError(err).
		WithHint("the namespace is incomplete: what was made by then stays; the same command "+
			"completes it once NATS takes it, \"drover namespace delete %s\" removes it", name)
}

func (s *service) describe(q *schemas.NamespaceRequest) (any, error) {
	ctx, cancel := context.WithTimeout(s.ctx, requestLimit)
	defer cancel()
	i, err := topology.Describe(ctx, s.conn, subject.Namespace(q.Name))
	return response(i), err
}

func (s *service) list(q *schemas.NamespaceRequest) (any, error) {
	ctx, cancel := context.WithTimeout(s.ctx, requestLimit)
	defer cancel()
	names, err := topology.Names(ctx, s.conn)
	if err != nil {
		return nil, err
	}
	first, found := slices.BinarySearch(names, subject.Namespace(q.After))
	if found {
		first++
	}
	names = names[first:]
	limit := maxPage
	if q.Limit > 0 {
		limit = min(q.Limit, limit)
	}
	a := &schemas.NamespaceListResponse{V: schemas.Version, Namespaces: []schemas.NamespaceInfo{}}
	if len(names) > limit {
		names = names[:limit]
		a.After = string(names[limit-1])
	}
	infos, err := topology.Lookups(ctx, s.conn, names, s.o.Logger)
	if noted := topology.NoteIncomplete(ctx, s.conn, infos); err == nil {
		err = noted
	}
	for _, i := range infos {
		a.Namespaces = append(a.Namespaces, wire(i))
	}
	return a, err
}

// delete begins a deletion, or joins the one that is under way, and answers when it is over or
// after a while. Whoever wants to know the end repeats the request: if this process has died by
// then, another one goes on where it stopped.
func (s *service) delete(q *schemas.NamespaceRequest) (any, error) {
	ns := subject.Namespace(q.Name)
	j := s.deletion(ns, q)
	limit := time.NewTimer(answerWithin)
	defer limit.Stop()
	select {
	case <-j.done:
		return &schemas.NamespaceResponse{V: schemas.Version}, j.err
	case <-limit.C:
	}
	ctx, cancel := context.WithTimeout(s.ctx, requestLimit)
	defer cancel()
	i, err := topology.Lookup(ctx, s.conn, ns)
	if errors.Is(err, topology.ErrNoNamespace) || err == nil && !i.Deleting {
		<-j.done // it is at its very end, or still counts the open runs
		return &schemas.NamespaceResponse{V: schemas.Version}, j.err
	}
	return response(i), err
}

func (s *service) deletion(ns subject.Namespace, q *schemas.NamespaceRequest) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.deletions[ns]; j != nil && (j.force || !q.Force) && j.made == q.CreatedAt {
		return j
	} // else that one may be refused, or is about another namespace: it is overtaken
	j := &job{done: make(chan struct{}), force: q.Force, made: q.CreatedAt}
	s.deletions[ns] = j
	log := s.o.Logger.WithField("by", q.Identity)
	s.wg.Go(func() {
		err := topology.Delete(s.ctx, s.conn, ns, topology.DeleteOptions{
			Force: q.Force, Made: q.CreatedAt.Time(), Reason: q.Reason, Logger: log,
		})
		j.err = errors.Unwrap(err) // without what was asked for
		s.mu.Lock()
		if s.deletions[ns] == j {
			delete(s.deletions, ns)
		}
		s.mu.Unlock()
		close(j.done)
	})
	return j
}

func response(i *topology.Info) *schemas.NamespaceResponse {
	a := &schemas.NamespaceResponse{V: schemas.Version}
	if i != nil {
		a.Namespace = new(wire(i))
	}
	return a
}

// wire is how a namespace travels.
func wire(i *topology.Info) schemas.NamespaceInfo {
	w := schemas.NamespaceInfo{
		Name: string(i.Name), Status: schemas.NamespaceReady, Partitions: i.Partitions,
		Replicas: i.Replicas, MaxBytes: i.MaxBytes, Compression: i.Compression,
		FlowRetention: i.FlowRetention, Retention: i.Retention, RequireTypes: i.RequireTypes,
		Description: i.Description, Storage: "file", CreatedAt: schemas.At(i.Created),
		Lists: i.Lists,
	}
	switch {
	case i.Deleting:
		w.Status = schemas.NamespaceDeleting
	case i.Incomplete:
		w.Status = schemas.NamespaceIncomplete
	}
	if i.Memory {
		w.Storage = "memory"
	}
	for _, u := range i.Usage {
		w.Usage = append(w.Usage, schemas.NamespaceUsage{
			Kind: u.Kind, Streams: u.Streams, Messages: u.Messages, Bytes: u.Bytes,
		})
	}
	return w
}
