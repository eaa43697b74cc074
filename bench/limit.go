package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/internal/freeport"
)

// Roles of processes that play a tape: the server with the part of the broker, and the worker.
const (
	limitRole = "limit"
	moverRole = "mover"
)

const (
	// plays is how often a tape is played, each time on an empty store; the median counts.
	plays = 3
	// playLimit is far beyond what any play takes.
	playLimit = 2 * time.Minute
	// Subjects of the processes, which no stream takes.
	subjectReady = "bench.ready."
	subjectMove  = "bench.move."
)

// limited is L1: what raw JetStream needs for the messages of W1. A run of W1 is recorded, and its messages are played again
// with nobody who reads them.
func limited(kind string, width int) func(context.Context, *bench, *line) error {
	return func(ctx context.Context, b *bench, l *line) error {
		t, err := b.tapeOf(ctx, kind, width)
		if err != nil {
			return err
		}
		return b.playAll(ctx, t, l)
	}
}

// playAll plays a tape several times, and tells the medians.
func (b *bench) playAll(ctx context.Context, t *tape, l *line) error {
	path := filepath.Join(b.dir, "tape")
	if err := t.save(path); err != nil {
		return err
	}
	l.Workflows = t.Workflows
	t.describe(l)
	var rates, cpu []float64
	for range plays {
		rate, used, err := b.play(ctx, t, path)
		if err != nil {
			return fmt.Errorf("the tape: %w", errors.Join(err, b.logs()))
		}
		rates, cpu = append(rates, rate), append(cpu, used)
	}
	l.PerSecond, l.CPUMillis = median(rates), median(cpu)
	l.Seconds = float64(l.Workflows) / l.PerSecond
	return nil
}

// tapeOf runs W1 on Drover and records what it stores.
func (b *bench) tapeOf(ctx context.Context, kind string, width int) (*tape, error) {
	if err := b.renew(ctx); err != nil {
		return nil, err
	}
	defer b.stop()
	outstanding, err := b.outstanding(width)
	if err != nil {
		return nil, err
	}
	r, err := b.record()
	if err != nil {
		return nil, err
	}
	n := cmp.Or(b.o.n, 2000)
	if _, err := atOnce(ctx, outstanding, n, func(ctx context.Context, _ int) error { return b.workflow(ctx, job{Kind: kind, N: 3}) }); err != nil {
		return nil, err
	}
	t, err := r.stop(ctx)
	if err != nil {
		return nil, fmt.Errorf("record a run: %w", err)
	}
	t.Workflows, t.Outstanding = n, outstanding
	return t, nil
}

// play moves a tape in three processes like those of the run, and returns workflows a second and CPU milliseconds a workflow.
func (b *bench) play(ctx context.Context, t *tape, path string) (rate, cpu float64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, playLimit, errors.New("the tape takes too long"))
	defer cancel()
	defer b.stop()
	nc, err := b.limitProcesses(ctx, limitRole, moverRole, path)
	if err != nil {
		return 0, 0, err
	}
	defer nc.Close()
	own := &mover{t: t, from: fromLoad, dial: func() (*nats.Conn, error) { return nats.Connect(b.url) }}
	defer own.close()
	if err := own.prepare(ctx); err != nil {
		return 0, 0, err
	}
	before, err := b.usages()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	_, err = atOnce(ctx, 3, 3, func(ctx context.Context, i int) error {
		if i == 2 {
			return own.move(ctx)
		}
		return moved(ctx, nc, subjectMove+[]string{fromServer, fromWorker}[i])
	})
	wall := time.Since(began)
	after, usage := b.usages()
	if err := errors.Join(err, usage); err != nil {
		return 0, 0, err
	}
	for p, u := range after {
		cpu += u.cpu - before[p].cpu
	}
	n := float64(t.Workflows)
	return n / wall.Seconds(), 1000 * cpu / n, nil
}

// limitProcesses starts the server and the worker of a limit on an empty store, and returns when both are ready, with a connection.
func (b *bench) limitProcesses(ctx context.Context, serverRole, workerRole, path string) (_ *nats.Conn, err error) {
	b.stop()
	if err := os.RemoveAll(b.store()); err != nil {
		return nil, err
	}
	port, err := freeport.Loopback()
	if err != nil {
		return nil, err
	}
	b.url = fmt.Sprintf("nats://127.0.0.1:%d", port)
	server, err := selfAs(serverRole, path, b.store(), b.o.profile, strconv.Itoa(port))
	if err != nil {
		return nil, err
	}
	if err := b.spawn("server", server); err != nil {
		return nil, err
	}
	if err := b.awaitNATS(ctx); err != nil {
		return nil, err
	}
	nc, err := nats.Connect(b.url)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			nc.Close()
		}
	}()
	if err := answers(ctx, nc, subjectReady+fromServer); err != nil {
		return nil, err
	}
	worker, err := selfAs(workerRole, path, b.url)
	if err != nil {
		return nil, err
	}
	if err := b.spawn("worker", worker); err != nil {
		return nil, err
	}
	return nc, answers(ctx, nc, subjectReady+fromWorker)
}

// selfAs is a process of this binary.
func selfAs(role string, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.Command(self, append([]string{role}, args...)...), nil
}

// answers waits until somebody answers.
func answers(ctx context.Context, nc *nats.Conn, subject string) error {
	for {
		_, err := nc.RequestWithContext(ctx, subject, nil)
		if !errors.Is(err, nats.ErrNoResponders) {
			return err
		}
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return fmt.Errorf("nobody answers %s: %w", subject, err)
		}
	}
}

// moved has a process move its part, and returns when it has.
func moved(ctx context.Context, nc *nats.Conn, subject string) error {
	answer, err := nc.RequestWithContext(ctx, subject, nil)
	if err == nil && len(answer.Data) > 0 {
		err = errors.New(string(answer.Data))
	}
	return err
}

// serveMover answers for a mover until ctx ends.
func serveMover(ctx context.Context, m *mover, nc *nats.Conn) error {
	defer m.close()
	if err := m.prepare(ctx); err != nil {
		return err
	}
	_, err := nc.Subscribe(subjectMove+m.from, func(ask *nats.Msg) {
		said := ""
		if err := m.move(ctx); err != nil {
			said = err.Error()
		}
		_ = ask.Respond([]byte(said)) // who asked may be gone
	})
	if err != nil {
		return err
	}
	if _, err := nc.Subscribe(subjectReady+m.from, func(ask *nats.Msg) { _ = ask.Respond(nil) }); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// runLimit is the server's process: a NATS server as Drover's own, with the streams of the tape, and the broker's part.
func runLimit(args []string) error {
	if len(args) != 4 {
		return errors.New("want tape, store, profile and port")
	}
	runtime.GOMAXPROCS(runtime.NumCPU())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	t, err := loadTape(args[0])
	if err != nil {
		return err
	}
	server, err := limitServer(ctx, args[1], args[2], args[3])
	if err != nil {
		return err
	}
	defer server.Shutdown()
	m := &mover{t: t, from: fromServer, dial: func() (*nats.Conn, error) { return nats.Connect("", nats.InProcessServer(server.Conn())) }}
	nc, err := m.dial()
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	for _, s := range t.Streams {
		if _, err := js.CreateStream(ctx, s.Config); err != nil {
			return fmt.Errorf("stream %s: %w", s.Config.Name, err)
		}
	}
	return serveMover(ctx, m, nc)
}

// limitServer is the NATS server of "drover server" without the rest of it.
func limitServer(ctx context.Context, store, profileName, portNumber string) (*embedded.Server, error) {
	profile, err := profileOf(profileName)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(portNumber)
	if err != nil {
		return nil, err
	}
	return embedded.Start(ctx, embedded.Options{StoreDir: store, Profile: profile, Port: port})
}

// runMover is the worker's process.
func runMover(args []string) error {
	if len(args) != 2 {
		return errors.New("want tape and URL")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	t, err := loadTape(args[0])
	if err != nil {
		return err
	}
	m := &mover{t: t, from: fromWorker, dial: func() (*nats.Conn, error) { return nats.Connect(args[1]) }}
	nc, err := m.dial()
	if err != nil {
		return err
	}
	defer nc.Close()
	return serveMover(ctx, m, nc)
}
