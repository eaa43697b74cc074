package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/internal/freeport"
	"github.com/droverhq/drover/internal/slack"
)

// bench is one sitting: a server, a worker, and this process as the load.
type bench struct {
	o       options
	dir     string
	binary  string
	url     string
	port    int           // of the server
	runs    string        // where workers note the runs of activities; empty for nowhere
	ready   time.Duration // of the latest start of the server
	greeted string        // the id of the workflow that was started to see it
	procs   map[string]*exec.Cmd
	client  *drover.Client
}

// buildServer builds the server of a source tree as releases are built, and returns its path; a given binary is taken as
// it is.
func buildServer(ctx context.Context, tree, dir, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	binary := filepath.Join(dir, "drover")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "./cmd/drover")
	cmd.Dir, cmd.Stderr = tree, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build the server of %s: %w", tree, err)
	}
	return binary, nil
}

// renew starts server and worker on an empty store.
func (b *bench) renew(ctx context.Context) error {
	b.stop()
	if err := os.RemoveAll(b.store()); err != nil {
		return err
	}
	if err := b.startServer(ctx); err != nil {
		return err
	}
	if err := b.startWorker(); err != nil {
		return err
	}
	return b.warm(ctx)
}

func (b *bench) spawn(name string, cmd *exec.Cmd) error {
	log, err := os.OpenFile(filepath.Join(b.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // the process has a copy
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := slack.Begin(cmd.Start); err != nil { // each widens its own, if it does
		return err
	}
	b.procs[name] = cmd
	return nil
}

func (b *bench) store() string { return filepath.Join(b.dir, "store") }

// startServer starts the server and waits until the API answers.
func (b *bench) startServer(ctx context.Context) error {
	began := time.Now()
	if err := b.launch(); err != nil {
		return err
	}
	if err := b.await(ctx); err != nil {
		return err
	}
	b.ready = time.Since(began)
	return b.client.Run(b.greeted, "").Terminate(ctx, nil)
}

// launch starts the server's process, where the one before it listened.
func (b *bench) launch(more ...string) error {
	if b.port == 0 {
		port, err := freeport.Loopback()
		if err != nil {
			return err
		}
		b.port = port
	}
	b.url = fmt.Sprintf("nats://127.0.0.1:%d", b.port)
	args := []string{
		"server", "--store", b.store(), "--profile", b.o.profile, "--port", strconv.Itoa(b.port), "--partitions", strconv.Itoa(b.o.partitions),
		"--roles", "broker,timers,ops",
	} // the worker decides, for flows too
	return b.spawn("server", exec.Command(b.binary, append(args, more...)...))
}

// await waits until the API answers.
func (b *bench) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for err := b.greet(ctx); err != nil; err = b.greet(ctx) {
		if sleep(ctx, 2*time.Millisecond) != nil {
			return errors.Join(fmt.Errorf("the server is not ready: %w", err), b.logs())
		}
	}
	return nil
}

// awaitNATS waits until the server takes connections: one that listens and does not run yet resets them.
func (b *bench) awaitNATS(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		nc, err := nats.Connect(b.url)
		if err == nil {
			nc.Close()
			return nil
		}
		if sleep(ctx, 2*time.Millisecond) != nil {
			return errors.Join(fmt.Errorf("the server does not listen: %w", err), b.logs())
		}
	}
}

// greet starts a workflow: that it can be started is what ready means. Left open, it would be asked about and its alarm would stand before
// all others, for as long as the bench runs.
func (b *bench) greet(ctx context.Context) (err error) {
	if b.client == nil {
		if b.client, err = drover.Connect(ctx, &drover.Options{URL: b.url, Name: "bench"}); err != nil {
			return err
		}
	}
	run, err := b.client.Start(ctx, "warm-up", nil, nil)
	if err == nil {
		b.greeted = run.ID
	}
	return err
}

func (b *bench) startWorker() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, workerRole, b.url)
	if b.runs != "" {
		cmd.Env = append(os.Environ(), runsVariable+"="+b.runs)
	}
	return b.spawn("worker", cmd)
}

// warm sends one workflow through decider and activities, so that lists and connections are there.
func (b *bench) warm(ctx context.Context) error {
	run, err := b.client.Start(ctx, "bench", job{Kind: "seq", N: 1}, nil)
	if err != nil {
		return err
	}
	return run.Result(ctx, nil)
}

// stop ends what runs. The folder stays.
func (b *bench) stop() {
	if b.client != nil {
		b.client.Close()
	}
	// The server goes last, the others first.
	for name, cmd := range b.procs {
		if name != "server" {
			end(cmd)
		}
	}
	if cmd := b.procs["server"]; cmd != nil {
		end(cmd)
	}
	b.client, b.procs = nil, map[string]*exec.Cmd{}
}

// end stops a process, by force if it takes its time.
func end(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	kill.Stop()
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
	// After the command's closing bracket: utime and stime are fields 12 and 13 from there, rss is 22.
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
