package e2e

import (
	"context"
	"flag"
	"os"
	"testing"

	"github.com/droverhq/drover/e2e/kit"
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
	"code-decider":     codeDeciderRole,
	"worker":           workerRole,
	"pair":             pairRole,
	"always-decider":   alwaysRole,
	"hang-decider":     hangRole,
	"slow-decider":     slowDeciderRole,
	"slow-worker":      slowWorkerRole,
	"player":           playerRole,
	"stranger-decider": strangerDecider,
	"puppet-decider":   strangerDecider,
	"flow-decider":     flowDeciderRole,
	"flow-worker":      flowWorkerRole,
	"code":             codeRole,
	"stranger-worker":  strangerWorker,
	"puppet-worker":    strangerWorker,
}

// binary is cmd/drover, built for this run.
var binary string

func TestMain(m *testing.M) {
	if name := os.Getenv(envRole); name != "" {
		os.Exit(kit.Play(roles, name))
	}
	flag.Parse()
	os.Exit(kit.Main(m, &binary))
}
