package flows

import (
	"context"
	crypto "crypto/rand"
	"math/rand"
	randv2 "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/google/uuid"
)

func clock(ctx workflow.Context, due time.Time) {
	_ = time.Now()             // want `time.Now in workflow code: use workflow.Now\(ctx\)`
	_ = time.Since(due)        // want `time.Since`
	_ = time.Until(due)        // want `time.Until`
	time.Sleep(time.Second)    // want `time.Sleep in workflow code: use workflow.Sleep`
	_ = time.After(1)          // want `time.After in workflow code: use workflow.Timer`
	_ = time.NewTimer(1)       // want `time.NewTimer`
	_ = time.Tick(time.Second) // want `time.Tick`
	now := time.Now            // want `time.Now`
	_ = now
	_ = due.After(workflow.Now(ctx)) // a method of the same name
	_ = time.Unix(0, 0).Add(time.Hour)
}

func chance(ctx workflow.Context) {
	_ = rand.Intn(6)                        // want `rand.Intn in workflow code: use workflow.Rand\(ctx\)`
	_ = randv2.IntN(6)                      // want `rand.IntN`
	_, _ = crypto.Read(nil)                 // want `rand.Read in workflow code: use workflow.Once`
	_, _ = crypto.Reader.Read(nil)          // want `rand.Reader`
	_ = uuid.NewString()                    // want `uuid.NewString in workflow code: use workflow.UUID`
	_ = workflow.Rand(ctx).IntN(6)          // the run's own
	_ = rand.New(rand.NewSource(1)).Intn(6) // always the same
	_ = randv2.New(randv2.NewPCG(1, 2)).IntN(6)
	_, _ = uuid.Parse("x")
}

func environment(ctx workflow.Context) error {
	_ = os.Getenv("HOME")      // want `os.Getenv in workflow code: hand it over in the input, or read it in an activity`
	_ = os.Args                // want `os.Args`
	_, err := os.ReadFile("f") // want `os.ReadFile in workflow code: let an activity do it, or workflow.Do`
	_, _ = filepath.Glob("*")  // want `filepath.Glob`
	_, _ = net.Dial("", "")    // want `net.Dial`
	runtime.LockOSThread()     // want `runtime.LockOSThread in workflow code: coroutines change their threads`
	if os.IsNotExist(err) {
		return os.ErrNotExist
	}
	_ = net.ParseIP("::1")
	_ = filepath.Join("a", "b")
	return nil
}

func native(ctx workflow.Context, c *drover.Client) {
	use(context.Background()) // want `context.Background in workflow code: nothing native waits for a workflow`
	use(context.TODO())       // want `context.TODO`
	_ = c.Start(nil, "x")     // want `drover.Client.Start in workflow code: a workflow asks by its context`
}

func use(context.Context) {}
