package chaos

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/droverhq/drover/e2e/kit"
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
	"nats": natsRole, "decider": begins(deciderRole), "worker": begins(workerRole), "pair": begins(pairRole), "claimer": begins(claimerRole),
}

// begins is a role that says that it has begun. A process that is told to end before that ends as any does, and not with code 0.
func begins(role func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		fmt.Println("begun")
		return role(ctx)
	}
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
