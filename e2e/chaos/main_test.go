package chaos

import (
	"context"
	"flag"
	"os"
	"testing"

	"github.com/droverhq/drover/e2e/child"
)

// envRole makes a child of the test binary. The other variables are what the role takes.
const (
	envRole = "DROVER_CHAOS_ROLE"
	envURL  = "DROVER_CHAOS_URL"
	envName = "DROVER_CHAOS_NAME"
	envDir  = "DROVER_CHAOS_DIR"
	envConf = "DROVER_CHAOS_CLUSTER"
)

// roles are what this binary can be besides a test.
var roles = map[string]func(context.Context) error{
	"nats": natsRole, "decider": deciderRole, "worker": workerRole, "pair": pairRole, "claimer": claimerRole,
}

// binary is cmd/drover, built for this run.
var binary string

func TestMain(m *testing.M) {
	if name := os.Getenv(envRole); name != "" {
		os.Exit(child.Play(roles, name))
	}
	flag.Parse()
	os.Exit(child.Main(m, &binary))
}
