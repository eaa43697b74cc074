// Package embedded runs a NATS server with JetStream inside this process.
//
// It is for the binary's server and dev commands, and for tests: one server on one host, or one
// node of a [Cluster]. Besides e2e it is the only package that links the server (about 20 MB that
// no client needs), so its API names no type of the server: callers get a
// [nats.InProcessConnProvider] or a URL and dial through broker/natsconn like everybody else.
//
// Invariants:
//   - A store has one server. A file lock enforces it, so a second process on the same folder is
//     refused at once. The kernel drops the lock with the process: after kill -9 the next start
//     needs no cleaning up.
//   - A store has an id for life ([Server.StoreID]) and a boot id for each start ([Server.Boot]). A
//     claim that bears this store's id and another boot was made by an earlier incarnation, which
//     the lock proves dead. It may be taken over at once.
//   - A stream that holds messages and cannot be recovered refuses the start. The NATS server only
//     warns and goes on without it; whoever then makes sure that its streams exist would put an
//     empty one in the place of a history.
//   - A store is bound to the cluster and the server name that it was first started with, or to
//     none.
//
// # Idle memory
//
// An idle server with 15 file streams holds 20 MB of resident memory, of which 11 MB are the
// process before the start, and takes less than 1 % of one core. No option of the server moves the
// memory by more than 0.5 MB: explicit limits, no system account, fewer remembered connections and
// other sync intervals were tried. What moves it is the index of the messages, about 170 bytes a
// subject (50,000 messages on as many subjects: 36 to 41 MB after a restart), and what a burst
// leaves uncollected until Go's next cycle, at most two minutes later.
package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/internal/diskspace"
	"github.com/droverhq/drover/internal/logx"
)

// Reasons for which [Start] refuses. Compare with errors.Is; the text says what to do.
var (
	// ErrInvalidOptions reports options that contradict themselves or leave their bounds.
	ErrInvalidOptions = errors.New("invalid options")
	// ErrStoreLocked reports that another server, of this process or another, has the store.
	ErrStoreLocked = errors.New("store is in use")
	// ErrStoreUnusable reports a store folder that cannot be made, written or locked.
	ErrStoreUnusable = errors.New("store is not usable")
	// ErrStoreDamaged reports a store whose id or streams cannot be read back.
	ErrStoreDamaged = errors.New("store is damaged")
	// ErrStoreGone reports that the store was removed, moved or replaced under a running server;
	// see [Server.Writable].
	ErrStoreGone = errors.New("its folder was removed, moved or replaced while the server ran")
	// ErrPortInUse reports that something else listens on the port.
	ErrPortInUse = errors.New("port is in use")
)

// Server is a running NATS server. It is made by [Start] and ended by [Server.Shutdown]. All
// methods may be called at any time from any goroutine.
type Server struct {
	opts     Options
	srv      *server.Server
	store    *store
	boot     string
	log      logrus.FieldLogger
	shutdown func()

	writable   writable
	measured   measured
	stage      stage
	expendable expendable
	defined    defined

	predecessors []string // see ended.go
	started      bool     // all that was in the store is served

	quit chan struct{} // ends the definition syncer
	wg   sync.WaitGroup
}

// fewInodes is how many free ones are worth a word: the streams of a namespace take some 100 files.
const fewInodes = 1000

// Start opens the store, recovers its streams and returns a server that accepts connections.
//
// ctx limits the start alone; its end later does not stop the server. The recovery of a large store
// cannot be interrupted: a ctx that ends meanwhile is obeyed once it is over.
func Start(ctx context.Context, o Options) (*Server, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("embedded server: %w", err)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("embedded server: start abandoned: %w", err)
	}
	st, err := openStore(o.StoreDir)
	if err != nil {
		return nil, fmt.Errorf("embedded server: %w", err)
	}
	s := &Server{
		opts: o, store: st, boot: rand.Text(), log: logx.Or(o.Logger), quit: make(chan struct{}),
	}
	s.shutdown = sync.OnceFunc(s.stop)
	if err := s.start(ctx); err != nil {
		s.Shutdown()
		return nil, fmt.Errorf("embedded server: %w", err)
	}
	s.log.Infof("embedded server ready: %v id=%s boot=%s", o, st.id, s.boot)
	if !o.DontListen && !isLoopback(o.Host) {
		s.log.Warnf(
			"embedded server listens on %s without authentication: whoever reaches the port may "+
				"read and write everything", o.Host)
	}
	if free, total := diskspace.Inodes(st.dir); total > 0 && free < fewInodes && !st.temporary {
		s.log.Warnf(
			"the file system of the store has %d of %d inodes free: each stream takes some, and "+
				"without any nothing is accepted any more", free, total)
	}
	if c := o.Cluster; c.on() && !isLoopback(c.Host) && c.User == "" {
		s.log.Warnf(
			"embedded server listens on %s for nodes of cluster %s without a password: whoever "+
				"reaches the port may join it, and read and write everything", c.Host, c.Name)
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	if err := s.portsAreFree(ctx); err != nil {
		return err
	}
	if err := s.bind(); err != nil {
		return err
	}
	if err := errors.Join(s.removeTorn(), s.mendDefinitions()); err != nil {
		return unusable(s.store.dir, err)
	}
	if err := s.takeEnded(); err != nil {
		return unusable(s.store.dir, err)
	}
	before := s.streamsOnDisk()
	srv, err := server.NewServer(s.serverOptions())
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidOptions, err)
	}
	s.srv = srv
	b := &bridge{log: s.log}
	srv.SetLoggerV2(b, false, false, false)
	srv.Start()
	if msg := b.fatal.Load(); msg != nil {
		return fmt.Errorf("the NATS server did not start: %s%s", *msg, s.store.short())
	}
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("start abandoned: %w", err)
	}
	if err := s.recovered(before); err != nil {
		return err
	}
	if !s.Clustered() {
		if err := s.mendConsumers(ctx); err != nil {
			return err
		}
	}
	s.started = true
	if s.opts.Profile != ProfileCluster && !s.store.temporary {
		s.wg.Go(func() { s.keepDefinitions(s.quit) })
	}
	return nil
}

// portsAreFree asks before the recovery, which may take a while, and gets a typed error, which the
// server keeps to itself. Whoever takes a port between this and the server's own listen is still
// reported, in the server's words.
func (s *Server) portsAreFree(ctx context.Context) error {
	if !s.opts.DontListen {
		if err := portIsFree(ctx, "", s.opts.Host, s.opts.Port); err != nil {
			return err
		}
	}
	if c := s.opts.Cluster; c.on() {
		return portIsFree(ctx, "Cluster.", c.Host, c.Port)
	}
	return nil
}

func portIsFree(ctx context.Context, of, host string, port int) error {
	addr := net.JoinHostPort(host, strconv.Itoa(max(port, 0)))
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	switch {
	case err == nil:
		return l.Close()
	case errors.Is(err, syscall.EADDRINUSE):
		random := " (-1 is a random one)"
		if of != "" {
			random = ""
		}
		return fmt.Errorf(
			"%w: something listens on %s: stop it or connect to it, or choose another %sPort%s",
			ErrPortInUse, addr, of, random)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf(
			"cannot listen on %s: choose a %sPort above 1023, or run with the right to bind it: %w",
			addr, of, err)
	case context.Cause(ctx) != nil:
		return fmt.Errorf("start abandoned: %w", context.Cause(ctx))
	default:
		return fmt.Errorf("cannot listen on %s: %sHost must be an address of this machine: %w",
			addr, of, err)
	}
}

// Conn returns what nats.InProcessServer takes: connections that use no socket.
func (s *Server) Conn() nats.InProcessConnProvider { return s.srv }

// ClientURL returns the address for clients in other processes, or "" for a server that does not
// listen.
func (s *Server) ClientURL() string {
	if s.opts.DontListen {
		return ""
	}
	return s.srv.ClientURL()
}

// StoreID returns the random id of the store: 26 characters of base32. It survives restarts; that
// of a memory store is as old as the server.
func (s *Server) StoreID() string { return s.store.id }

// Boot returns the random id of this start: 26 characters of base32.
func (s *Server) Boot() string { return s.boot }

// Memory reports whether the store ends with the server. Streams must then be made with
// MemoryStorage.
func (s *Server) Memory() bool { return s.store.temporary }

// StoreDir returns the absolute path of the store. That of a memory store is a temporary folder.
func (s *Server) StoreDir() string { return s.store.dir }

// Profile returns the durability that the server runs with.
func (s *Server) Profile() Profile { return s.opts.Profile }

// Shutdown closes all connections, flushes the streams, waits until the server has ended and gives
// the store free. The folder of a memory store is removed. Every call returns after the first one
// has done its work.
func (s *Server) Shutdown() { s.shutdown() }

// rest is how long a server of this process is left alone before it is told to end. It then sleeps
// for 50 ms with a lock of JetStream in its hand, if anybody pulls. In a synctest bubble a request
// that waits for this lock, such as one for a consumer, would keep the clock from moving on, and
// the server would sleep for ever. The bubble's clock does not move before what is on its way has
// been done, so after a pause, however short, nobody waits. It is uneven, so that nothing else is
// due just then. Elsewhere it only takes its time.
const rest = time.Millisecond + 17*time.Nanosecond

func (s *Server) stop() {
	close(s.quit)
	s.wg.Wait()
	if s.srv != nil {
		time.Sleep(rest)
		whole := s.started && s.marksEnd() && s.unwritable() == nil
		s.srv.Shutdown()
		s.srv.WaitForShutdown()
		if whole {
			if err := s.markEnded(); err != nil {
				s.log.WithField("err", err).Warn(
					"embedded server: the store is not marked as complete; the next start looks through it")
			}
		}
	}
	if err := errors.Join(s.stage.close(), s.store.close()); err != nil {
		s.log.WithField("err", err).Warn("embedded server: the store was not left clean")
	}
}
