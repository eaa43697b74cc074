package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nkeys"
)

//go:embed nats.conf
var natsConf []byte

// The users of nats.conf.
const (
	userService = "service"
	userShop    = "shop"
	userPCI     = "pci"
)

// house is a NATS server with users, and a "drover server" beside it: two processes, and a folder with their store and keys.
// They need not be of this program; it starts them so that one command shows all.
type house struct {
	url       string
	dir       string
	processes []*process // in the order they were started
}

const (
	startLimit = 30 * time.Second
	stopLimit  = 10 * time.Second
	look       = 10 * time.Millisecond
)

func openHouse(ctx context.Context) (*house, error) {
	bin, err := buildServers(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "drover-orders-")
	if err != nil {
		return nil, err
	}
	h := &house{dir: dir}
	if err := h.open(ctx, bin); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// open starts the servers, whose binaries are in bin.
func (h *house) open(ctx context.Context, bin string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not ready after %v", startLimit))
	defer cancel()
	if err := h.startNATS(ctx, filepath.Join(bin, "nats-server")); err != nil {
		return fmt.Errorf("nats-server: %w", err)
	}
	if err := h.startDrover(ctx, filepath.Join(bin, "drover")); err != nil {
		return fmt.Errorf("drover server: %w", err)
	}
	return nil
}

// close ends the processes, the last one first, and removes the folder.
func (h *house) close() {
	for _, p := range slices.Backward(h.processes) {
		p.stop()
	}
	_ = os.RemoveAll(h.dir) // what is left of a temporary folder harms nobody
}

// key is the file with a user's private key.
func (h *house) key(user string) string { return filepath.Join(h.dir, user+".nk") }

// buildServers builds both into bin/orders of the module, which takes a moment if they are there already.
func buildServers(ctx context.Context) (dir string, err error) {
	root, err := goCommand(ctx, "", "list", "-m", "-f", "{{.Dir}}", "github.com/droverhq/drover")
	if err != nil {
		return "", err
	}
	dir = filepath.Join(root, "bin", "orders")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	_, err = goCommand(ctx, root, "build", "-buildvcs=false", "-ldflags=-s -w", "-o", dir+string(filepath.Separator),
		"github.com/droverhq/drover/cmd/drover", "github.com/nats-io/nats-server/v2")
	return dir, err
}

func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w; run this in the module of Drover, or give -nats: %s", args[0], err, bytes.TrimSpace(complaints.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}

// startNATS makes the users' keys and starts the server, which tells its port in a file.
func (h *house) startNATS(ctx context.Context, binary string) error {
	conf := filepath.Join(h.dir, "nats.conf")
	if err := os.WriteFile(conf, natsConf, 0o600); err != nil {
		return err
	}
	env := []string{"ORDERS_DIR=" + h.dir}
	for _, user := range []string{userService, userShop, userPCI} {
		public, err := writeKey(h.key(user))
		if err != nil {
			return err
		}
		env = append(env, "ORDERS_"+strings.ToUpper(user)+"="+public)
	}
	cmd := exec.Command(binary, "-c", conf)
	p, err := h.start("nats-server", cmd, env...)
	if err != nil {
		return err
	}
	ports := filepath.Join(h.dir, fmt.Sprintf("%s_%d.ports", filepath.Base(binary), cmd.Process.Pid))
	var at struct {
		NATS []string `json:"nats"`
	}
	err = p.until(ctx, func() bool {
		b, err := os.ReadFile(ports)
		return err == nil && json.Unmarshal(b, &at) == nil && len(at.NATS) > 0
	})
	if err != nil {
		return err
	}
	h.url = at.NATS[0]
	return nil
}

// writeKey makes a user's key pair, keeps the private part in a file and returns the public one.
func writeKey(file string) (public string, err error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", err
	}
	defer pair.Wipe()
	seed, err := pair.Seed()
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(file, seed, 0o600); err != nil {
		return "", err
	}
	return pair.PublicKey()
}

// startDrover starts the workflow service, which prints a line when it is ready.
func (h *house) startDrover(ctx context.Context, binary string) error {
	cmd := exec.Command(binary, "server", "--nats", h.url, "--nkey", h.key(userService), "--json", "--log-level", "warn")
	ready := &tail{}
	cmd.Stdout = ready
	p, err := h.start("drover server", cmd)
	if err != nil {
		return err
	}
	return p.until(ctx, func() bool { return strings.Contains(ready.String(), "\n") })
}

// start starts a process of the house. Where to connect and as whom is said by flags alone.
func (h *house) start(name string, cmd *exec.Cmd, env ...string) (*process, error) {
	inherited := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "NATS_") })
	cmd.Env = append(inherited, env...)
	complaints := &tail{}
	cmd.Stderr = complaints
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := newProcess(name, cmd, complaints)
	h.processes = append(h.processes, p)
	return p, nil
}

// process is one that this program has started and will end.
type process struct {
	name       string
	cmd        *exec.Cmd
	complaints *tail
	ended      chan struct{}
	err        error // how, once it has ended
}

func newProcess(name string, cmd *exec.Cmd, complaints *tail) *process {
	p := &process{name: name, cmd: cmd, complaints: complaints, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p
}

// wait returns nil when ctx ends, and an error if the process ends before.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.ended:
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("%s has ended by itself (%w): %s", p.name, p.ending(), p.complaints)
	case <-ctx.Done():
		return nil
	}
}

func (p *process) ending() error {
	if p.err == nil {
		return errors.New("exit status 0")
	}
	return p.err
}

// until waits for ready, and gives up when the process or ctx ends.
func (p *process) until(ctx context.Context, ready func() bool) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for !ready() {
		select {
		case <-p.ended:
			return fmt.Errorf("it has ended by itself (%w): %s", p.ending(), p.complaints)
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", context.Cause(ctx), p.complaints)
		case <-tick.C:
		}
	}
	return nil
}

// stop asks the process to end, and ends it if it does not.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it fails if the process has ended
	limit := time.NewTimer(stopLimit)
	defer limit.Stop()
	select {
	case <-p.ended:
	case <-limit.C:
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// tail keeps the last of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailBytes = 4096

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if over := len(t.b) - tailBytes; over > 0 {
		t.b = t.b[over:]
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
