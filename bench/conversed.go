package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/broker/post"
)

// Roles of processes that hold the conversation LC.
const (
	hubRole  = "hub"
	handRole = "hand"
)

const (
	// scripted is how many workflows are heard for a script, and scriptWidth how many of them at a time.
	scripted    = 200
	scriptWidth = 4
	scriptTries = 10
	// oneByOne is a width of LC: no two workflows at a time.
	oneByOne = -1
)

// conversed is LC: the messages of W1 in their order, each waiting for the ones that it waits for in W1, and no engine. n is how many
// workflows, 0 for as many as W1.
func conversed(width, n int) func(context.Context, *bench, *line) error {
	return func(ctx context.Context, b *bench, l *line) error {
		outstanding, err := 1, error(nil)
		if width != oneByOne {
			outstanding, err = b.outstanding(width)
		}
		if err != nil {
			return err
		}
		l.Workflows = cmp.Or(n, b.o.n, 2000)
		s, err := b.scriptOf(ctx, min(l.Workflows, scripted))
		if err != nil {
			return err
		}
		path := filepath.Join(b.dir, "script")
		if err := s.save(path); err != nil {
			return err
		}
		defer b.stop()
		if err := b.converse(ctx, s, path, outstanding, l); err != nil {
			return fmt.Errorf("the conversation: %w", errors.Join(err, b.logs()))
		}
		return nil
	}
}

// scriptOf runs W1 on Drover and writes down what is said. Few workflows are outstanding, so that nothing has to wait: an engine
// that is late says more, and LC is what it says in good time. On a machine that others use it takes several tries.
func (b *bench) scriptOf(ctx context.Context, n int) (s *script, err error) {
	if err := b.renew(ctx); err != nil {
		return nil, err
	}
	defer b.stop()
	for range scriptTries {
		if s, err = b.transcript(ctx, n); err != nil {
			return nil, err
		}
		if err = s.check(); err == nil {
			return s, nil
		}
	}
	return nil, err
}

// transcript is what is said in one run of some workflows.
func (b *bench) transcript(ctx context.Context, n int) (*script, error) {
	conn, err := nats.Connect(b.url)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	r := &recorder{b: b, conn: conn, wants: func(*nats.Msg) bool { return true }}
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	if _, err := atOnce(ctx, scriptWidth, n, func(ctx context.Context, _ int) error { return b.workflow(ctx, job{Kind: "seq", N: 3}) }); err != nil {
		return nil, err
	}
	all, err := r.end(ctx)
	if err != nil {
		return nil, fmt.Errorf("record a run: %w", err)
	}
	return transcribe(all, n, b.o.partitions), nil
}

// converse holds the conversation in three processes like those of W1, and measures as W1 is measured.
func (b *bench) converse(ctx context.Context, s *script, path string, outstanding int, l *line) error {
	ready, err := b.limitProcesses(ctx, hubRole, handRole, path)
	if err != nil {
		return err
	}
	ready.Close()
	conn, err := post.Dial(ctx, post.Options{URL: b.url, Name: "bench"})
	if err != nil {
		return err
	}
	defer conn.Close()
	c := newCaller(conn, s)
	if err := warmUp(ctx, c.workflow); err != nil { // as W1 is warmed up
		return err
	}
	before, err := b.readBy(ctx, conn)
	if err != nil {
		return err
	}
	began := time.Now()
	l.took, err = atOnce(ctx, outstanding, l.Workflows, func(ctx context.Context, i int) error { return c.workflow(ctx, i+warmUps) })
	wall := time.Since(began)
	if err != nil {
		return err
	}
	after, err := b.readBy(ctx, conn)
	if err != nil {
		return err
	}
	l.PerSecond = float64(l.Workflows) / wall.Seconds()
	l.account(wall, before, after)
	return nil
}

// runHub is the server's process: a NATS server as Drover's own, and in it what says the broker's part.
func runHub(args []string) error {
	if len(args) != 4 {
		return errors.New("want script, store, profile and port")
	}
	runtime.GOMAXPROCS(runtime.NumCPU())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	s, err := loadScript(args[0])
	if err != nil {
		return err
	}
	server, err := limitServer(ctx, args[1], args[2], args[3])
	if err != nil {
		return err
	}
	defer server.Shutdown()
	talking, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	h, err := openHub(ctx, server, s, fail)
	defer h.close()
	if err != nil {
		return err
	}
	return serveUntil(ctx, talking, h.api, fromServer)
}

// runHand is the worker's process.
func runHand(args []string) error {
	if len(args) != 2 {
		return errors.New("want script and URL")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	s, err := loadScript(args[0])
	if err != nil {
		return err
	}
	conn, err := post.Dial(ctx, post.Options{URL: args[1], Name: "bench worker"})
	if err != nil {
		return err
	}
	defer conn.Close()
	talking, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if err := listenAsWorker(conn, s, fail); err != nil {
		return err
	}
	return serveUntil(ctx, talking, conn, fromWorker)
}

// serveUntil says that a process is ready until ctx ends. That the conversation ends before, which is within ctx, is an error.
func serveUntil(ctx, talking context.Context, conn *post.Conn, from string) error {
	sub, err := conn.Subscribe(subjectReady+from, "", func(m post.Msg) { _ = m.Respond(nil, nil) }) // who asked may be gone
	if err != nil {
		return err
	}
	defer sub.Close()
	<-talking.Done()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(talking)
}
