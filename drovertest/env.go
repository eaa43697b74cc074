package drovertest

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
)

// syncInterval is the longest that the store takes. Nobody cuts the power of a test; a process
// crash loses nothing.
const syncInterval = 24 * time.Hour

// Env is a whole Drover, made by [Run] or [Start] for one test. Its methods may be called by
// several goroutines; those that wait or fail the test only by goroutines of the test.
type Env struct {
	// Client is connected to the namespace, and stays so through restarts. Do not close it.
	Client *drover.Client

	t            testing.TB
	o            Options // Seed is not 0
	ns           subject.Namespace
	log          logrus.FieldLogger
	virtual      bool
	dir          string // of the store
	port         int    // in real time; -1 until the first start
	serverSwitch *serverSwitch
	conn         *natsconn.Conn // of Client

	// envLock guards what follows.
	envLock        *envLock
	server         *embedded.Server
	roles          *roles // nil while they are down
	runningWorkers []*runningWorker
	leapPause      leapPause
	seeded         bool // runs of workflow code leave the memory by Options.Seed
}

// open starts everything; what it began ends with the test.
func open(t testing.TB, o *Options, virtual bool) *Env {
	t.Helper()
	var opts Options
	if o != nil {
		opts = *o
	}
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		t.Fatalf("drovertest: %v", err)
	}
	opts.Seed = cmp.Or(opts.Seed, 1+rand.Int64N(1<<30)) //nolint:gosec // a coin
	log, endLog := opts.logger(t)
	e := &Env{
		t: t, o: opts, ns: subject.Namespace(opts.Namespace), log: log, virtual: virtual,
		dir: t.TempDir(), port: -1, serverSwitch: newServerSwitch(), envLock: newEnvLock(),
	}
	t.Cleanup(func() {
		e.end()
		endLog()
	})
	if err := e.begin(t.Context()); err != nil {
		t.Fatalf("drovertest: %v", err)
	}
	return e
}

// begin makes server, client, namespace and roles, in this order.
func (e *Env) begin(ctx context.Context) error {
	if err := e.startServer(ctx); err != nil {
		return err
	}
	var err error
	// A lost connection is what a test of restarts is about; the log need not tell.
	if e.conn, err = natsconn.Dial(ctx, natsconn.Options{InProcess: e.serverSwitch, Name: "client"}); err != nil {
		return err
	}
	if e.Client, err = drover.Connect(ctx,
		&drover.Options{Conn: e.conn.NATS(), Namespace: e.o.Namespace, Logger: e.log}); err != nil {
		return err
	}
	space := topology.Options{Namespace: e.o.Namespace, Partitions: e.o.Partitions, Logger: e.log}
	if _, err := topology.Ensure(ctx, e.conn, space); err != nil {
		return err
	}
	return e.startRoles(ctx)
}

func (e *Env) startServer(ctx context.Context) error {
	o := embedded.Options{
		StoreDir: e.dir, Profile: embedded.ProfileDev, SyncInterval: syncInterval,
		DontListen: e.virtual, Port: e.port, Logger: e.log,
	}
	s, err := embedded.Start(ctx, o)
	if err != nil {
		return err
	}
	e.server = s
	if !e.virtual && e.port == -1 { // the next one listens where clients know it
		u, err := url.Parse(s.ClientURL())
		if err != nil {
			return err
		}
		if e.port, err = strconv.Atoi(u.Port()); err != nil {
			return err
		}
	}
	e.serverSwitch.open(s.Conn())
	return nil
}

// stopServer lets clients to p instead, or to nobody if that is nil.
func (e *Env) stopServer(p provider) {
	e.serverSwitch.open(p)
	// A server that is stopped while it makes a stream leaves a goroutine after, for which a bubble
	// would wait for ever. Virtual time passes only when all is done.
	time.Sleep(time.Millisecond)
	// A server that ends keeps the subscriptions of the clients that it sends away. A message for
	// one of their pull requests is then delivered in vain, again and again, while the server
	// sleeps until a consumer has been written: virtual time stands still. So clients leave first.
	e.serverSwitch.cut()
	time.Sleep(time.Millisecond)
	e.server.Shutdown()
	e.server = nil
}

func (e *Env) startRoles(ctx context.Context) (err error) {
	e.roles, err = startRoles(ctx, rolesOptions{
		ns: e.ns, partitions: e.o.Partitions, server: e.server, serverSwitch: e.serverSwitch,
		virtual: e.virtual, log: e.log, t: e.t,
	})
	return err
}

// end checks the histories and stops what there is, also after a start that failed half-way.
func (e *Env) end() {
	e.envLock.enter()
	defer e.envLock.leave()
	for _, s := range e.runningWorkers {
		s.end()
	}
	if e.roles != nil {
		e.roles.shutdown()
		e.roles = nil
		e.check()
	}
	if e.conn != nil {
		e.conn.Close()
	}
	if e.server != nil {
		e.stopServer(nil)
	}
}

// URL is the address of NATS for other processes; it is empty inside [Run], which no other process
// can reach.
func (e *Env) URL() string {
	e.envLock.enter()
	defer e.envLock.leave()
	if e.server == nil {
		return ""
	}
	return e.server.ClientURL()
}

// Restart stops server, broker and timers in good order, leaves them down for a while, and starts
// them again on the same store. It returns when requests are answered again. Workers and client
// stay; they reconnect by themselves, and try it ten times a second: inside [Run] an hour down
// costs 50 ms.
func (e *Env) Restart(down time.Duration) {
	e.t.Helper()
	e.bounce(down, func() {
		e.roles.shutdown()
		e.stopServer(nil)
	})
}

// Crash is like [Env.Restart], but server, broker and timers end as by kill -9: between two of
// their messages, without a word to anybody. What the server had acknowledged is there again.
func (e *Env) Crash(down time.Duration) {
	e.t.Helper()
	e.bounce(down, func() {
		e.stopServer(nil)
		e.roles.kill()
	})
}

func (e *Env) bounce(down time.Duration, stop func()) {
	e.t.Helper()
	e.envLock.enter()
	defer e.envLock.leave()
	if e.roles == nil {
		e.t.Fatal("drovertest: the server is down: an earlier start has failed")
	}
	again := e.reconnected()
	stop()
	e.roles = nil
	time.Sleep(down)
	if err := e.resume(again); err != nil {
		e.t.Fatalf("drovertest: restart: %v", err)
	}
}

// reconnected returns a function that waits until the client's connection has come back.
func (e *Env) reconnected() func(context.Context) error {
	back := make(chan struct{}, 1)
	forget := e.conn.OnReconnect(func() {
		select {
		case back <- struct{}{}:
		default:
		}
	})
	return func(ctx context.Context) error {
		defer forget()
		ctx, cancel := context.WithTimeoutCause(ctx, ownLimit,
			errors.New("the client has not reconnected in time"))
		defer cancel()
		select {
		case <-back:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// resume starts server and roles after a stop.
func (e *Env) resume(again func(context.Context) error) error {
	ctx := context.WithoutCancel(e.t.Context())
	if err := e.startServer(ctx); err != nil {
		return err
	}
	if err := again(ctx); err != nil {
		return err
	}
	return e.startRoles(ctx)
}
