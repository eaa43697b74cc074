package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/ops"
	"github.com/droverhq/drover/timers"
)

// inside is a whole Drover in this process: NATS server on files, broker, timers, health task, and the worker. Each part has
// connections of its own, as in processes of their own, but without sockets.
type inside struct {
	server *embedded.Server
	broker *broker.Broker
	stop   context.CancelFunc
	parts  sync.WaitGroup

	mu     sync.Mutex
	conns  []*post.Conn
	failed []error
}

const insideNode = "bench"

// renewInside starts everything in this process on an empty store, with as many threads of Go code as there are cores.
func (b *bench) renewInside(ctx context.Context) error {
	b.stop()
	if err := os.RemoveAll(b.store()); err != nil {
		return err
	}
	runtime.GOMAXPROCS(runtime.NumCPU())
	h := &inside{}
	b.inside = h
	began := time.Now()
	profile, err := profileOf(b.o.profile)
	if err != nil {
		return err
	}
	if h.server, err = embedded.Start(ctx, embedded.Options{StoreDir: b.store(), Profile: profile, DontListen: true}); err != nil {
		return err
	}
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.stop = stop
	if err := h.startRoles(ctx, alive, b.o.partitions); err != nil {
		return err
	}
	worker, err := h.client(ctx)
	if err != nil {
		return err
	}
	h.run(alive, func(ctx context.Context) error { return work(ctx, worker, []string{listName(0)}) })
	if b.client, err = h.client(ctx); err != nil {
		return err
	}
	b.ready = time.Since(began)
	return b.warm(ctx)
}

// profileOf is the durability profile of a name.
func profileOf(name string) (embedded.Profile, error) {
	for _, p := range []embedded.Profile{embedded.ProfileDev, embedded.ProfileSingle} {
		if p.String() == name {
			return p, nil
		}
	}
	return 0, fmt.Errorf("-profile is %q: use dev or single", name)
}

// startRoles makes the namespace and starts the roles of cmd/drover's server but for the audit and the retention, and returns when the broker owns
// all partitions.
func (h *inside) startRoles(ctx, alive context.Context, partitions int) error {
	conn, err := h.dial(ctx, insideNode)
	if err != nil {
		return err
	}
	single := h.server.Profile() == embedded.ProfileSingle
	space, err := topology.Ensure(ctx, conn, topology.Options{Namespace: string(namespace), Partitions: partitions, Synced: single})
	if err != nil {
		return err
	}
	held, err := claims.Open(conn, namespace.BucketClaims(), claims.Options{Node: insideNode, StoreID: h.server.StoreID(), Boot: h.server.Boot()})
	if err != nil {
		return err
	}
	o := broker.Options{Namespace: string(namespace), Partitions: space.Partitions, Claims: held, Node: insideNode, Synced: single && !space.Relaxed}
	if single {
		o.Stage = h.server.Stage
	}
	if space.Relaxed {
		o.Expendable = h.server.Expendable
	}
	h.broker, err = broker.New(h.dial, o)
	if err != nil {
		return err
	}
	ring := timers.New(conn, &timers.Options{Namespace: string(namespace), Partitions: space.Partitions, Node: insideNode, Claims: held, KernelTimers: true, Ring: h.broker.Ring})
	master, err := ops.NewMaster(ops.MasterOptions{Claims: held, Fence: h.broker.Fence})
	if err != nil {
		return err
	}
	for _, run := range []func(context.Context) error{h.broker.Run, ring.Run, master.Run} {
		h.run(alive, run)
	}
	for len(h.broker.Owned()) < space.Partitions {
		if err := errors.Join(sleep(ctx, time.Millisecond), h.failure()); err != nil {
			return err
		}
	}
	return nil
}

// run keeps a part going until alive ends.
func (h *inside) run(alive context.Context, part func(context.Context) error) {
	h.parts.Go(func() {
		if err := part(alive); err != nil && alive.Err() == nil {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.failed = append(h.failed, err)
		}
	})
}

func (h *inside) failure() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(h.failed...)
}

func (h *inside) dial(ctx context.Context, name string) (*post.Conn, error) {
	c, err := post.Dial(ctx, post.Options{InProcess: h.server.Conn(), Name: name})
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns = append(h.conns, c)
	return c, nil
}

func (h *inside) client(ctx context.Context) (*drover.Client, error) {
	c, err := h.dial(ctx, "bench")
	if err != nil {
		return nil, err
	}
	return drover.Connect(ctx, &drover.Options{Conn: c})
}

// shutdown ends the parts in good order, the server last.
func (h *inside) shutdown() {
	if h.stop != nil {
		h.stop()
	}
	h.parts.Wait()
	for _, c := range h.conns {
		c.Close()
	}
	if h.server != nil {
		h.server.Shutdown()
	}
}

// profiled runs a workload, and writes its profiles where -cpuprofile and -memprofile say so. Only what runs in this process is seen.
func (b *bench) profiled(do func() error) (err error) {
	if b.o.cpuProfile+b.o.memProfile == "" {
		return do()
	}
	if b.inside == nil {
		return errors.New("-cpuprofile and -memprofile see this process alone: use them with W1in, W2in, W3sin or W3pin")
	}
	if b.o.memProfile != "" {
		defer func(rate int) {
			runtime.MemProfileRate = rate
			err = errors.Join(err, writeAllocations(b.o.memProfile))
		}(runtime.MemProfileRate)
		runtime.MemProfileRate = allocationSample
	}
	if b.o.cpuProfile == "" {
		return do()
	}
	f, err := os.Create(b.o.cpuProfile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return do()
}

// allocationSample is of how many allocated bytes one is looked at for -memprofile.
const allocationSample = 4096

func writeAllocations(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}

// allocations is what was ever allocated on the heap of this process.
func allocations() (objects, bytes uint64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs, m.TotalAlloc
}
