package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

// Environment of a child process that is this test binary in another role.
const (
	envRole = "DROVER_E2E_ROLE"
	envURL  = "DROVER_E2E_URL"
	envName = "DROVER_E2E_NAME"
	envDir  = "DROVER_E2E_DIR"
)

// roles are what this binary can be besides a test.
var roles = map[string]func(context.Context) error{
	"nats":             natsRole,
	"decider":          deciderRole,
	"worker":           workerRole,
	"slow-decider":     slowDeciderRole,
	"slow-worker":      slowWorkerRole,
	"player":           playerRole,
	"stranger-decider": strangerDecider,
	"puppet-decider":   strangerDecider,
	"stranger-worker":  strangerWorker,
	"puppet-worker":    strangerWorker,
}

// binary is cmd/drover, built for this run.
var binary string

func TestMain(m *testing.M) {
	if name := os.Getenv(envRole); name != "" {
		os.Exit(play(name))
	}
	flag.Parse()
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "drover-e2e-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "drover")
	build := exec.Command("go", "build", "-o", binary, "github.com/droverhq/drover/cmd/drover")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build drover: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// play is the main function of a role. SIGTERM is its planned end.
func play(name string) int {
	role := roles[name]
	if role == nil {
		fmt.Fprintf(os.Stderr, "there is no role %q\n", name)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := role(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}
