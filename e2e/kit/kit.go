// Package kit starts programs for tests: drover as it is shipped, built once for each test binary,
// and test binaries in other roles. A [Child] belongs to a test and does not outlive it. A
// [Process] belongs to nobody: whoever begins it ends it.
//
// It is for tests alone.
package kit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/droverhq/drover/internal/freeport"
)

// Build builds cmd/drover in a folder and returns the path of the binary.
func Build(dir string) (binary string, err error) {
	binary = filepath.Join(dir, "drover")
	// Without tables for debuggers, as it is shipped: they take half of the time.
	build := exec.Command(
		"go", "build", "-ldflags", "-s -w", "-o", binary, "github.com/droverhq/drover/cmd/drover",
	)
	out, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build drover: %w\n%s", err, out)
	}
	return binary, nil
}

// Main builds cmd/drover in a folder of its own, notes the path, and runs the tests. It returns the
// exit code.
func Main(m *testing.M, binary *string) int {
	dir, err := os.MkdirTemp("", "drover-kit-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if *binary, err = Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// Play is the main function of a test binary in one of its roles. SIGTERM is the planned end of a
// role. It returns the exit code.
func Play(roles map[string]func(context.Context) error, name string) int {
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

// Folder returns a folder for the stores and logs of a test. A failed test keeps it and says where
// it is.
func Folder(t *testing.T, prefix string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("stores and logs are kept in %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// FreePort returns a port of the loopback that is free.
func FreePort(t *testing.T) int {
	t.Helper()
	port, err := freeport.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	return port
}
