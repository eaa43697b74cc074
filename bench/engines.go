package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// engine is one column of a sitting: something that is measured in a process of its own, on an empty store each time.
type engine struct {
	name string
	// layout says which processes there are.
	layout string
	// workloads it has, by their names in the table, and what it calls them.
	workloads map[string]string
	// prepare builds it; an error is why it is not run.
	prepare func(ctx context.Context, s *sitting) error
	// run runs one of its workloads, by its own name.
	run func(ctx context.Context, s *sitting, workload string) ([]*line, error)
}

// sittingOrder are the workloads of a sitting in the order in which they are run.
var sittingOrder = []string{"W6", "W1", "W1b", "W1n", "W2", "W3", "W4", "W4a", "W5", "W7w", "W7s", "W7b"}

const (
	across = "server, worker and load are three processes"

	everySecond = "; synced once a second"
	eachWrite   = "; synced before it is acknowledged"
)

func engines() []*engine {
	return []*engine{
		ourselves("drover-dev", "dev", across+everySecond, same(sittingOrder...)),
		ourselves("drover-single", "single", across+eachWrite, same(sittingOrder...)),
		temporal("mem", across+"; nothing is written to disk"),
		temporal("pg", "server, Postgres, worker and load are four processes"+eachWrite),
		restate("run", across+eachWrite+"; steps are taken by the workflow's handler itself"),
		restate("rpc", across+eachWrite+"; steps are calls of another handler"),
	}
}

func engineNames() (names []string) {
	for _, e := range engines() {
		names = append(names, e.name)
	}
	return names
}

func same(names ...string) map[string]string {
	m := map[string]string{}
	for _, n := range names {
		m[n] = n
	}
	return m
}

// ourselves is this engine, measured by this binary.
func ourselves(name, profile, layout string, all map[string]string) *engine {
	return &engine{name: name, layout: layout, workloads: all, run: func(ctx context.Context, s *sitting, workload string) ([]*line, error) {
		args := []string{
			"-w", workload, "-server", s.drover, "-profile", profile, "-conc", s.o.concurrency, "-sleep", s.o.sleep.String(),
			"-partitions", strconv.Itoa(s.o.partitions), "-n", strconv.Itoa(s.o.n),
		}
		return measured(ctx, s.self, args)
	}}
}

// measured runs a bench of this kind in a process of its own, and returns the lines that it printed.
func measured(ctx context.Context, binary string, args []string) (lines []*line, err error) {
	out, err := output(ctx, binary, args, "")
	if err != nil {
		return nil, err
	}
	for in := bufio.NewScanner(bytes.NewReader(out)); in.Scan(); {
		var l line
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			return nil, err
		}
		lines = append(lines, &l)
	}
	return lines, nil
}

// output runs a program that has processes of its own to end, and returns what it printed, also if it failed.
func output(ctx context.Context, binary string, args []string, dir string) ([]byte, error) {
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(said.String())
		return out.Bytes(), fmt.Errorf("%w: %s", err, text[max(0, len(text)-500):])
	}
	return out.Bytes(), nil
}

// number and text read a figure of a peer's line; one that is missing is 0.
func (p peerLine) number(name string) float64 {
	v, _ := p[name].(float64)
	return v
}

func (p peerLine) text(name string) string {
	v, _ := p[name].(string)
	return v
}

// peerLine is what the harness of a peer prints for a workload.
type peerLine map[string]any

// failure is why a peer's line has no figures, if it has none.
func (p peerLine) failure() string {
	return p.text("error") // a signal that was sent again, as last_send_error says, has come
}
