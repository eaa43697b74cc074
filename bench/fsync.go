package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// traced are the system calls that wait for the disk.
const traced = "fsync,fdatasync"

// fsyncs is W1f: W1 while strace counts what the server syncs. Each traced call stops the server for a while, so that only
// the count is kept of this run.
func fsyncs(ctx context.Context, b *bench, l *line) error {
	summary := filepath.Join(b.dir, "strace")
	cmd := exec.Command("strace", "-f", "-c", "-e", "trace="+traced, "-o", summary, "-p", strconv.Itoa(b.procs["server"].Process.Pid))
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w: install strace to count fsyncs", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// It attaches to each thread in turn, and says nowhere when it has done so.
	err := sleep(ctx, time.Second)
	if err == nil {
		l.Workflows = min(cmp.Or(b.o.n, 500), 500)
		_, err = atOnce(ctx, 64, l.Workflows, func(ctx context.Context, _ int) error { return b.workflow(ctx, job{Kind: "seq", N: 3}) })
	}
	select {
	case early := <-ended: // it attached to nothing
		return fmt.Errorf("strace ended before the work did (%v); it may not be allowed to look at processes here: %s", early, strings.TrimSpace(said.String()))
	default:
	}
	_ = cmd.Process.Signal(syscall.SIGINT)
	<-ended // says that it was interrupted
	if err != nil {
		return err
	}
	calls, err := straced(summary)
	l.Fsyncs = float64(calls) / float64(l.Workflows)
	return err
}

// straced adds up the calls in a summary that strace -c wrote. One without a table counted none.
func straced(path string) (calls int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("strace has written no summary: %w", err)
	}
	defer f.Close()
	wanted := strings.Split(traced, ",")
	in := bufio.NewScanner(f)
	for in.Scan() {
		// % time, seconds, usecs/call, calls, and errors if there were any; then the name.
		fields := strings.Fields(in.Text())
		if len(fields) < 5 {
			continue
		}
		for _, name := range wanted {
			if fields[len(fields)-1] != name {
				continue
			}
			n, err := strconv.Atoi(fields[3])
			if err != nil {
				return 0, errors.Join(fmt.Errorf("a line of strace's summary is not what it was: %q", in.Text()), err)
			}
			calls += n
		}
	}
	return calls, in.Err()
}
