package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/e2e/kit"
	"github.com/droverhq/drover/e2e/load"
	"github.com/droverhq/drover/e2e/stranger"
)

// natsRole is a NATS server that knows nothing of Drover.
func natsRole(ctx context.Context) error {
	return kit.ServeNATS(ctx, os.Getenv(envURL), os.Getenv(envDir), nil)
}

func strangerConfig() stranger.Config {
	return stranger.Config{
		URL: os.Getenv(envURL), Name: os.Getenv(envName), In: os.Stdin, Out: os.Stdout,
		Puppet: os.Getenv(envRole) == "puppet-decider" || os.Getenv(envRole) == "puppet-worker",
	}
}

func strangerDecider(ctx context.Context) error { return stranger.Decider(ctx, strangerConfig()) }

func strangerWorker(ctx context.Context) error { return stranger.Worker(ctx, strangerConfig()) }

func connectRole(ctx context.Context) (*drover.Client, error) {
	return kit.Connect(ctx, drover.Options{URL: os.Getenv(envURL)})
}

// deciderRole decides over the load.
func deciderRole(ctx context.Context) error {
	c, err := connectRole(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return deciders(c).Run(ctx)
}

// codeDeciderRole is deciderRole with workflow code.
func codeDeciderRole(ctx context.Context) error {
	c, err := connectRole(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	w := c.Deciders(nil)
	workflow.Implement(w, load.Load, load.Code, nil)
	return w.Run(ctx)
}

func deciders(c *drover.Client) *decider.Worker {
	w := c.Deciders(nil)
	w.Register(load.Type, decider.Func(load.Decide))
	return w
}

// workerRole does the activities of the load. With a folder it notes there each run of each activity, by a file of its
// own, which no crash can take back.
func workerRole(ctx context.Context) error {
	c, err := connectRole(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return activities(c).Run(ctx)
}

func activities(c *drover.Client) *activity.Worker {
	notes := os.Getenv(envDir)
	w := c.Activities(&activity.Options{Lists: []string{cmp.Or(os.Getenv(envName), load.List)}})
	activity.Register(w, "square", func(ctx context.Context, n int) (int, error) {
		if notes != "" {
			i := activity.Info(ctx)
			if err := note(notes, i.Run+"."+i.ActivityID, i.Attempt); err != nil {
				return 0, err
			}
		}
		return n * n, nil
	})
	return w
}

// pairRole is a decider worker and an activity worker on one connection: what it decides comes with the outcomes of its activities.
func pairRole(ctx context.Context) error {
	c, err := connectRole(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, end := context.WithCancel(ctx)
	defer end()
	ended := make(chan error, 1)
	go func() { defer end(); ended <- activities(c).Run(ctx) }()
	err = deciders(c).Run(ctx)
	end()
	return errors.Join(err, <-ended)
}

// note counts that something was done.
func note(dir, what string, attempt int) error {
	f, err := os.OpenFile(filepath.Join(dir, what), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "pid %d attempt %d\n", os.Getpid(), attempt)
	return errors.Join(err, f.Close())
}
