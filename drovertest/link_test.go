package drovertest_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// linked lists the packages that a program is made of.
func linked(t *testing.T, pkg string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", pkg)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, complaints.String())
	}
	return strings.Fields(string(out))
}

func isServer(pkg string) bool { return strings.HasPrefix(pkg, "github.com/nats-io/nats-server/") }

func TestAWorkerLinksNoServer(t *testing.T) {
	packages := linked(t, "./testdata/worker")
	if !slices.Contains(packages, "github.com/droverhq/drover/activity") {
		t.Fatalf("the list lacks package activity: %v", packages)
	}
	if i := slices.IndexFunc(packages, isServer); i >= 0 {
		t.Fatalf("a worker links %s: 20 MB that it does not need", packages[i])
	}
	// The look would find it.
	if packages := linked(t, "."); !slices.ContainsFunc(packages, isServer) {
		t.Fatalf("package drovertest does not link the server: %v", packages)
	}
}
