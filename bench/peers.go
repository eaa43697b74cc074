package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

// What the harnesses of the peers call the workloads. W6 is no workload of theirs: the lines about their start and their restart
// come with each, and those around W1 are taken.
var peerWorkloads = map[string]string{"W1": "W1", "W1b": "W1b", "W2": "W2", "W3": "W3", "W4": "W4", "W5": "W5", "W7w": "W7w", "W7s": "W7s"}

// restateServer is the version that the harness was written for.
const restateServer = "@restatedev/restate-server@1.7.12"

// temporal is Temporal's server and SDK, with its data in memory or in a Postgres of its own.
func temporal(mode, layout string) *engine {
	e := &engine{name: "temporal-" + mode, layout: layout, workloads: peerWorkloads}
	e.prepare = func(ctx context.Context, s *sitting) error {
		if os.Getenv("BENCH_TUNED") != "" {
			s.machine.Versions["temporal"] = "tuned, by BENCH_TUNED"
		}
		if mode == "pg" {
			if err := s.postgres(ctx); err != nil {
				return err
			}
		}
		return s.buildPeer(ctx, "temporal-bench")
	}
	e.run = func(ctx context.Context, s *sitting, workload string) ([]*line, error) {
		return s.runPeer(ctx, "temporal-bench", mode, workload, s.o.slowN)
	}
	return e
}

// restate is Restate's server on one node.
func restate(mode, layout string) *engine {
	e := &engine{name: "restate-" + mode, layout: layout, workloads: peerWorkloads}
	e.prepare = func(ctx context.Context, s *sitting) error {
		if err := s.buildPeer(ctx, "restate-bench"); err != nil {
			return err
		}
		return s.installRestate(ctx)
	}
	e.run = func(ctx context.Context, s *sitting, workload string) ([]*line, error) {
		return s.runPeer(ctx, "restate-bench", mode, workload, 2000)
	}
	return e
}

// buildPeer builds a harness into the cache.
func (s *sitting) buildPeer(ctx context.Context, name string) error {
	from, err := filepath.Abs(filepath.Join(s.o.peers, name))
	if err != nil {
		return err
	}
	if _, err := os.Stat(from); err != nil {
		return fmt.Errorf("its harness is not there, -peers names the folder: %w", err)
	}
	fmt.Fprintf(os.Stderr, "bench: building %s; the first time this may take 10 minutes\n", name)
	to := filepath.Join(s.cache, name)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(to, name), ".")
	cmd.Dir = from
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("it does not build: %w: %s", err, said[max(0, len(said)-500):])
	}
	return nil
}

// installRestate has npm put the server where the harness looks for it.
func (s *sitting) installRestate(ctx context.Context) error {
	srv := filepath.Join(s.cache, "restate-bench", "srv")
	binary := filepath.Join(srv, "node_modules", "@restatedev", "restate-server-linux-x64", "bin", "restate-server")
	if _, err := os.Stat(binary); err != nil {
		if err := os.MkdirAll(srv, 0o755); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, "npm", "install", "--prefix", srv, "--ignore-scripts", restateServer)
		if said, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("npm install %s: %w: %s", restateServer, err, said[max(0, len(said)-500):])
		}
	}
	s.machine.Versions["restate"] = said(ctx, binary, "--version")
	return nil
}

// postgres makes sure that the harness finds initdb and postgres, which Debian keeps out of the path.
func (s *sitting) postgres(ctx context.Context) error {
	if _, err := exec.LookPath("initdb"); err != nil {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
		if len(found) == 0 {
			return errors.New("there is no initdb: apt-get install postgresql")
		}
		path := filepath.Dir(slices.Max(found)) + string(os.PathListSeparator) + os.Getenv("PATH")
		if err := os.Setenv("PATH", path); err != nil {
			return err
		}
	}
	if os.Geteuid() != 0 {
		return errors.New("the harness starts Postgres as the user postgres, which needs root")
	}
	s.machine.Versions["postgres"] = said(ctx, "postgres", "--version")
	return nil
}

// runPeer runs a workload of a peer and translates its lines. n is how many workflows make a run of it, unless -n is smaller.
func (s *sitting) runPeer(ctx context.Context, name, mode, workload string, n int) ([]*line, error) {
	n = min(cmp.Or(s.o.n, n), n)
	dir := filepath.Join(s.dir, "peer")
	defer os.RemoveAll(dir)
	args := []string{
		"-mode", mode, "-dir", dir, "-w", workload, "-n", strconv.Itoa(n), "-conc", s.o.concurrency, "-timeout", "5m",
		"-sleep", s.o.sleep.String(), "-sleepn", strconv.Itoa(cmp.Or(s.o.n, 5000)), "-signals", strconv.Itoa(cmp.Or(s.o.n, 2000)),
	}
	out, err := output(ctx, filepath.Join(s.cache, name, name), args, s.dir)
	var all []peerLine
	for in := bufio.NewScanner(bytes.NewReader(out)); in.Scan(); {
		var p peerLine
		if err := json.Unmarshal(in.Bytes(), &p); err != nil {
			return nil, fmt.Errorf("its harness printed %q: %w", in.Text(), err)
		}
		if p.text("workload") == "error" {
			return nil, errors.New(p.text("error"))
		}
		all = append(all, p)
	}
	if err != nil {
		return nil, err
	}
	return translate(workload, all)
}

// translate turns what a harness printed for a workload into lines like our own.
func translate(workload string, all []peerLine) (lines []*line, err error) {
	world, durability := &line{Workload: "W6"}, ""
	for _, p := range all {
		l := &line{Version: p.text("version")}
		if l.Peer, err = json.Marshal(p); err != nil {
			return nil, err
		}
		n := p.number("n")
		l.Workflows, l.Seconds, l.OthersCPU = int(n), p.number("wall_s"), max(p.number("cpu_others_s"), 0)
		l.CPU = map[string]float64{"server": p.number("cpu_server_s") + p.number("cpu_db_s"), "worker": p.number("cpu_worker_s"), "load": p.number("cpu_client_s")}
		l.RSS = map[string]int64{"server": megabytes(p.number("server_rss_mb") + p.number("db_rss_mb")), "worker": megabytes(p.number("worker_rss_mb"))}
		l.NotRun = p.failure()
		l.Durability = durability
		switch p.text("workload") {
		case "W6-start":
			durability = p.text("durability") // the other lines do not say it
			world.Version, world.Durability, world.Peer = l.Version, durability, l.Peer
			world.ReadyMS, world.IdleRSS = p.number("server_ready_ms"), megabytes(p.number("server_rss_at_ready_mb")+p.number("aux_rss_mb"))
			world.Binary = megabytes(p.number("server_binary_mb"))
			continue
		case "W6-restart":
			world.RestartMS = p.number("server_ready_ms")
			continue
		case "W1":
			l.Workload, l.PerSecond, l.Disk = workload, p.number("wf_per_s"), p.number("disk_bytes_per_wf")
			l.P50, l.P99 = p.number("p50_ms"), p.number("p99_ms")
			l.CPUMillis = 1000 * l.totalCPU() / n
			world.RSS, world.Disk = l.RSS, l.Disk
		case "W2":
			l.Workload, l.P50, l.P99, l.WallMS = "W2", p.number("p50_ms"), p.number("p99_ms"), p.number("p50_ms")
		case "W3-fan", "W3-seq":
			l.Workload = map[string]string{"W3-fan": "W3p", "W3-seq": "W3s"}[p.text("workload")]
			l.Workflows, l.WallMS = int(p.number("runs")), p.number("median_ms")
		case "W4":
			l.Workload, l.Workflows, l.Signals, l.Senders = fmt.Sprintf("W4-%.0f", p.number("conc")), 0, int(n), int(p.number("conc"))
			l.Accepted, l.HandledMS = p.number("send_per_s"), p.number("all_handled_ms")
		case "W5":
			l.Workload, l.Starts = "W5", p.number("start_per_s")
			l.LagP50, l.LagP99, l.LagMax = p.number("lag_p50_ms"), p.number("lag_p99_ms"), p.number("lag_max_ms")
			l.Asleep = int(n - p.number("woken_when_last_started"))
			l.AsleepRSS = map[string]int64{"server": megabytes(p.number("server_rss_all_sleeping_mb"))}
			if woken := p.number("woken"); l.NotRun == "" && woken < n {
				l.NotRun = fmt.Sprintf("%.0f of %.0f sleepers woke in time", woken, n)
			}
		case "W7-kill-worker", "W7-kill-server":
			l.crashed(workload, p)
		default: // one of the workloads' own names, with an error
			l.Workload = workload
		}
		lines = append(lines, l)
	}
	if workload == "W1" {
		lines = append(lines, world)
	}
	return lines, nil
}

// crashed translates a W7.
func (l *line) crashed(workload string, p peerLine) {
	n := p.number("n")
	if p.number("first_completion_after_kill_ms") <= 0 && l.NotRun == "" {
		l.NotRun = "none ended after the kill"
	}
	l.Workload, l.ProgressMS, l.AllDoneMS = workload, p.number("first_completion_after_kill_ms"), p.number("all_done_after_kill_ms")
	l.RestartGap = l.ProgressMS
	if workload == "W7w" {
		l.RestartGap -= millis(onTheWire) // as the harness waits
	}
	lost := p.number("lost_not_found") // which are done for the harness
	unfinished := n - p.number("done") + lost
	l.Unfinished = &unfinished
	if lost == 0 { // else nobody knows how far those came
		doubles := p.number("activity_runs") - 3*p.number("done")
		l.Doubles = &doubles
	}
}

func (l *line) totalCPU() (sum float64) {
	for _, s := range l.CPU {
		sum += s
	}
	return sum
}

func megabytes(n float64) int64 { return int64(n * (1 << 20)) }
