package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
)

var (
	// ErrNotReady says that the server has not begun to answer requests.
	ErrNotReady = errors.New("the server is not ready")
	// ErrNoNATS says that the server has no NATS server of its own.
	ErrNoNATS = errors.New(
		"the server has no NATS server of its own: connect to that of Options.External")
	errAgain = errors.New("the server was run before: make another one with New")
)

// Server is a server of Drover. Its methods may be called by several goroutines.
type Server struct {
	o     Options
	began atomic.Bool
	ready chan struct{} // closed when requests are answered
	ended chan struct{} // closed when Run returns

	node *node // after ready
	info Info  // after ready
	err  error // after ended
}

// New prepares a server. Nothing is started or stored before [Server.Run].
//
// Errors: [ErrInvalidOptions], whose text names the field.
func New(o Options) (*Server, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	return &Server{o: o, ready: make(chan struct{}), ended: make(chan struct{})}, nil
}

// Run runs the server until ctx is done and its roles have stopped: they take no more work, finish
// what runs within Options.DrainTimeout and hand over what they hold. A server can be run once.
//
// It returns nil after a clean stop, and the first failure otherwise: one of the start, or of a
// role that ended by itself. It returns [ErrRecycled] after a recycle with Options.RecycleExit, and
// [ErrCutShort] if Options.Hurry has cut the stop short.
func (s *Server) Run(ctx context.Context) error {
	if s.began.Swap(true) {
		return errAgain
	}
	defer close(s.ended)
	s.err = s.run(ctx)
	return s.err
}

func (s *Server) run(ctx context.Context) error {
	n, ctx := newNode(ctx, s.o)
	if s.o.Metrics != nil {
		if err := s.o.Metrics.Register(n.metrics); err != nil {
			return fmt.Errorf("metrics: %w: give each server of a process a registry of its own", err)
		}
		defer s.o.Metrics.Unregister(n.metrics)
	}
	n.ready = func() {
		s.node, s.info = n, n.info()
		close(s.ready)
	}
	defer n.close()
	if err := n.open(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // told to stop while it started
		}
		return n.explainDisk(err)
	}
	return n.run(ctx)
}

// Ready waits until the server answers requests, and says where it is. If the server ends before,
// the error wraps [ErrNotReady] and that of [Server.Run].
func (s *Server) Ready(ctx context.Context) (Info, error) {
	select {
	case <-s.ready:
		return s.info, nil
	case <-s.ended:
	case <-ctx.Done():
		return Info{}, context.Cause(ctx)
	}
	select {
	case <-s.ready: // it was ready, and has ended since
		return s.info, nil
	default:
	}
	if s.err == nil {
		return Info{}, fmt.Errorf("%w: it was told to stop", ErrNotReady)
	}
	return Info{}, fmt.Errorf("%w: %w", ErrNotReady, s.err)
}

// InProcessConn connects to the embedded NATS server without a socket, once the server is ready:
//
//	conn, err := nats.Connect("", nats.InProcessServer(s))
//
// Errors: [ErrNotReady], [ErrNoNATS].
func (s *Server) InProcessConn() (net.Conn, error) {
	select {
	case <-s.ready:
	default:
		return nil, ErrNotReady
	}
	if s.node.server == nil {
		return nil, ErrNoNATS
	}
	return s.node.server.Conn().InProcessConn()
}
