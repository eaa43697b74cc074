package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/e2e/stranger"
	"github.com/droverhq/drover/schemas"
)

// natsRole is a NATS server that knows nothing of Drover.
func natsRole(ctx context.Context) error {
	at, err := url.Parse(os.Getenv(envURL))
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		return err
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: os.Getenv(envDir), NoSigs: true,
	})
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	go s.Start()
	if !s.ReadyForConnections(patience) {
		return errors.New("the server does not get ready")
	}
	fmt.Println("ready")
	<-ctx.Done()
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

func strangerConfig() stranger.Config {
	return stranger.Config{
		URL: os.Getenv(envURL), Name: os.Getenv(envName), In: os.Stdin, Out: os.Stdout,
		Puppet: os.Getenv(envRole) == "puppet-decider" || os.Getenv(envRole) == "puppet-worker",
	}
}

func strangerDecider(ctx context.Context) error { return stranger.Decider(ctx, strangerConfig()) }

func strangerWorker(ctx context.Context) error { return stranger.Worker(ctx, strangerConfig()) }

// The type and the task list of the load.
const (
	loadType = "load"
	loadList = "load"
	// pokeSignal is the name of the signals that a workflow of the load waits for.
	pokeSignal = "poke"
)

// load is the input of a workflow of the load: so many activities one after the other, a timer behind the first one,
// and so many signals to wait for before the end.
type load struct {
	Steps   int  `json:"steps"`
	Timer   int  `json:"timer,omitempty"` // milliseconds; 0: none
	Signals int  `json:"signals,omitempty"`
	Once    bool `json:"once,omitempty"` // the activities are not idempotent
}

// want is the result of a load that went well.
func (l load) want() string {
	var s strings.Builder
	for i := range l.Steps {
		s.WriteString(fmt.Sprintf("%d;", (i+1)*(i+1)))
	}
	return strconv.Quote(s.String())
}

func connectRole(ctx context.Context) (*drover.Client, error) {
	log := logrus.New()
	log.SetOutput(os.Stderr)
	for {
		c, err := drover.Connect(ctx, &drover.Options{URL: os.Getenv(envURL), Logger: log})
		if !errors.Is(err, drover.ErrUnavailable) || ctx.Err() != nil {
			return c, err
		}
		select { // the server is down too; whoever starts a worker does not wait for it
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
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

func deciders(c *drover.Client) *decider.Worker {
	w := c.Deciders(nil)
	w.Register(loadType, decider.Func(decideLoad))
	return w
}

func decideLoad(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
	v, err := task.View(ctx)
	if err != nil {
		return nil, err
	}
	var in load
	if err := v.Input().Decode(&in); err != nil {
		return []schemas.Decision{decider.Fail("bad-input", err.Error())}, nil
	}
	var done strings.Builder
	for i := range in.Steps {
		id := fmt.Sprintf("step-%d", i+1)
		switch status, out, reason := v.Activity(id); {
		case status == 0:
			opts := []decider.ActivityOption{decider.List(loadList)}
			if in.Once {
				opts = append(opts, decider.NotIdempotent())
			}
			return []schemas.Decision{decider.Schedule(id, "square", i+1, opts...)}, nil
		case status == decider.ActivitySucceeded:
			done.WriteString(string(out) + ";")
		case status.Closed():
			return []schemas.Decision{decider.Fail(reason, nil)}, nil
		default:
			return nil, nil
		}
		if i == 0 && in.Timer > 0 {
			switch v.Timer("pause") {
			case 0:
				return []schemas.Decision{decider.Timer("pause", time.Duration(in.Timer)*time.Millisecond)}, nil
			case decider.TimerOpen:
				return nil, nil
			}
		}
	}
	if len(v.Signals(pokeSignal)) < in.Signals {
		return nil, nil
	}
	return []schemas.Decision{decider.Complete(done.String())}, nil
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
	w := c.Activities(&activity.Options{Lists: []string{cmp.Or(os.Getenv(envName), loadList)}})
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
