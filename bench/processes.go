package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/droverhq/drover"
)

// bench is one sitting: a server, a worker, and this process as the load.
type bench struct {
	o      options
	dir    string
	binary string
	url    string
	ready  time.Duration
	procs  map[string]*exec.Cmd
	client *drover.Client
}

func (b *bench) build(ctx context.Context) error {
	b.procs = make(map[string]*exec.Cmd)
	if b.binary = b.o.server; b.binary != "" {
		return nil
	}
	b.binary = filepath.Join(b.dir, "drover")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", b.binary, "./cmd/drover")
	cmd.Dir = ".."
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return cmd.Run()
}

func (b *bench) spawn(name string, cmd *exec.Cmd) error {
	log, err := os.Create(filepath.Join(b.dir, name+".log"))
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	b.procs[name] = cmd
	return cmd.Start()
}

func (b *bench) store() string { return filepath.Join(b.dir, "store") }

// startServer starts the server and waits until the API answers.
func (b *bench) startServer(ctx context.Context) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	b.url = fmt.Sprintf("nats://127.0.0.1:%d", port)
	began := time.Now()
	cmd := exec.Command(b.binary, "server", "--store", b.store(), "--profile", b.o.profile, "--port", strconv.Itoa(port), "--partitions", strconv.Itoa(b.o.partitions))
	if err := b.spawn("server", cmd); err != nil {
		return err
	}
	deadline := began.Add(20 * time.Second)
	for time.Now().Before(deadline) && ctx.Err() == nil {
		c, err := net.DialTimeout("tcp", strings.TrimPrefix(b.url, "nats://"), time.Second)
		if err != nil {
			time.Sleep(2 * time.Millisecond)
			continue
		}
		_ = c.Close()
		break
	}
	if b.client, err = drover.Connect(ctx, &drover.Options{URL: b.url, Name: "bench"}); err != nil {
		return errors.Join(err, b.logs())
	}
	for time.Now().Before(deadline) {
		// A workflow can be started: that is what ready means.
		try, cancel := context.WithTimeout(ctx, 20*time.Second)
		_, err = b.client.Start(try, "warm-up", nil, nil)
		cancel()
		if err == nil {
			b.ready = time.Since(began)
			return nil
		}
	}
	return errors.Join(fmt.Errorf("the server is not ready: %w", err), b.logs())
}

func (b *bench) startWorker(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := b.spawn("worker", exec.Command(self, workerRole, b.url)); err != nil {
		return err
	}
	// One workflow through decider and activities, so that lists and connections are there.
	run, err := b.client.Start(ctx, "bench", job{Kind: "seq", N: 1}, nil)
	if err != nil {
		return err
	}
	return run.Result(ctx, nil)
}

func (b *bench) stop() {
	if b.client != nil {
		b.client.Close()
	}
	for _, name := range []string{"worker", "server"} {
		if cmd := b.procs[name]; cmd != nil && cmd.Process != nil {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			done := make(chan struct{})
			go func() { _ = cmd.Wait(); close(done) }()
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				_ = cmd.Process.Kill()
				<-done
			}
		}
	}
}

// logs returns what the processes said, as an error to join.
func (b *bench) logs() error {
	var all []error
	for name := range b.procs {
		if text, err := os.ReadFile(filepath.Join(b.dir, name+".log")); err == nil && len(text) > 0 {
			all = append(all, fmt.Errorf("log of %s:\n%s", name, text[max(0, len(text)-4000):]))
		}
	}
	return errors.Join(all...)
}

func (b *bench) pids() map[string]int {
	pids := map[string]int{"load": os.Getpid()}
	for name, cmd := range b.procs {
		pids[name] = cmd.Process.Pid
	}
	return pids
}

// usage is what the kernel has counted for a process.
type usage struct {
	cpu float64 // seconds
	rss int64   // bytes
}

const clockTicks = 100 // USER_HZ, the same on every Linux that Go runs on

func usageOf(pid int) (usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, err
	}
	// Behind the command's closing bracket: utime and stime are fields 12 and 13 from there, rss is 22.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 22 {
		return usage{}, fmt.Errorf("/proc/%d/stat is not what it was", pid)
	}
	var ticks, pages int64
	for _, i := range []int{11, 12} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return usage{}, err
		}
		ticks += n
	}
	if pages, err = strconv.ParseInt(fields[21], 10, 64); err != nil {
		return usage{}, err
	}
	return usage{cpu: float64(ticks) / clockTicks, rss: pages * int64(os.Getpagesize())}, nil
}

// diskUsage adds up the blocks that the files below dir take.
func diskUsage(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // a file that is gone meanwhile counts nothing
		}
		if info, err := d.Info(); err == nil {
			if s, ok := info.Sys().(*syscall.Stat_t); ok {
				total += s.Blocks * 512
			}
		}
		return nil
	})
	return total
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("no TCP address")
	}
	return addr.Port, nil
}
