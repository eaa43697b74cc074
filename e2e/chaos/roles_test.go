package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/e2e/kit"
)

// natsConf is how a NATS server is a node of a cluster: where it listens for the others, and through which proxies it
// reaches them.
type natsConf struct {
	Name   string   `json:"name"`
	Port   int      `json:"port"`
	Routes []string `json:"routes"`
}

// natsRole is a NATS server that knows nothing of Drover.
func natsRole(ctx context.Context) error {
	return kit.ServeNATS(ctx, os.Getenv(envURL), os.Getenv(envDir), func(o *server.Options) error {
		if conf := os.Getenv(envConf); conf != "" {
			return cluster(o, conf)
		}
		return nil
	})
}

// cluster makes a server a node of a cluster. Every way to another node is named and leads through a proxy; what a node
// would tell the others of itself leads nowhere, so that no way goes past the proxies.
func cluster(o *server.Options, text string) error {
	var conf natsConf
	if err := json.Unmarshal([]byte(text), &conf); err != nil {
		return err
	}
	o.ServerName = conf.Name
	o.Cluster = server.ClusterOpts{Name: "chaos", Host: "127.0.0.1", Port: conf.Port, Advertise: "127.0.0.1:9", NoAdvertise: true}
	for _, r := range conf.Routes {
		u, err := url.Parse("nats-route://" + r)
		if err != nil {
			return err
		}
		o.Routes = append(o.Routes, u)
	}
	return nil
}

func roleLogger() logrus.FieldLogger {
	log := logrus.New()
	log.SetOutput(os.Stderr)
	return log
}

// connectRole connects, until somebody is there.
func connectRole(ctx context.Context) (*drover.Client, error) {
	return kit.Connect(ctx, drover.Options{URL: os.Getenv(envURL), Name: os.Getenv(envName)})
}

// deciderRole decides over plans.
func deciderRole(ctx context.Context) error {
	c, err := connectRole(ctx)
	if err != nil {
		return ignoreEnd(ctx, err)
	}
	defer c.Close()
	return deciders(c).Run(ctx)
}

func deciders(c *drover.Client) *decider.Worker {
	w := c.Deciders(nil)
	w.Register(planType, planDecider)
	return w
}

// workerRole does the activities of plans.
func workerRole(ctx context.Context) error {
	c, err := connectRole(ctx)
	if err != nil {
		return ignoreEnd(ctx, err)
	}
	defer c.Close()
	return activities(c).Run(ctx)
}

// pairRole is both on one connection: what it decides comes with the outcomes of its activities.
func pairRole(ctx context.Context) error {
	c, err := connectRole(ctx)
	if err != nil {
		return ignoreEnd(ctx, err)
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

// activities note each run of each activity by a file of its own, which no crash can take back.
func activities(c *drover.Client) *activity.Worker {
	// An outcome is stored once a leader is: an election takes up to 6 s, and the next fault may be on its heels.
	w := c.Activities(&activity.Options{Lists: []string{planList}, DrainTimeout: patience / 2, KeepAlive: time.Second})
	square := func(ctx context.Context, n int) (int, error) {
		if err := note(os.Getenv(envDir), activity.Info(ctx)); err != nil {
			return 0, err
		}
		if n%2 == 0 { // long enough to be caught at work
			select {
			case <-time.After(time.Duration(rand.IntN(30)) * time.Millisecond):
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
		}
		return n * n, nil
	}
	activity.Register(w, "square", square)
	activity.Register(w, "odd square", square) // a type of its own, which is quick
	return w
}

// note counts a run of an activity.
func note(dir string, i activity.TaskInfo) error {
	line := fmt.Sprintf("pid %d attempt %d at %d\n", os.Getpid(), i.Attempt, time.Now().UnixNano())
	return appendTo(filepath.Join(dir, i.Run+"."+i.ActivityID), line)
}

// ignoreEnd takes the end of ctx for a planned one.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// The claims of the test: a namespace of their own, so that no other holder meets them.
const (
	claimSpace = "chaosclaims"
	claimKeys  = 2
	claimTTL   = 2 * time.Second
	useEvery   = 50 * time.Millisecond
)

// claimerRole takes claims, says from time to time that it holds them, and gives some back. It records what it does.
func claimerRole(ctx context.Context) error {
	c, err := connectRole(ctx)
	if err != nil {
		return ignoreEnd(ctx, err)
	}
	defer c.Close()
	name := os.Getenv(envName)
	file, err := os.OpenFile(filepath.Join(os.Getenv(envDir), name+".jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	rec := NewRecorder(file)
	book, err := claims.Open(natsconn.Of(c), subject.Namespace(claimSpace).BucketClaims(), claims.Options{Node: name, TTL: claimTTL, Logger: roleLogger()})
	if err != nil {
		return err
	}
	var held []claimHold
	for i := range claimKeys {
		held = append(held, claimHold{rec: rec, book: book, key: fmt.Sprintf("chaos.%d", i), client: os.Getpid()})
	}
	tick := time.NewTicker(useEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			_, err := rec.Ops(0)
			return err
		case <-tick.C:
		}
		for i := range held {
			held[i].turn(ctx)
		}
	}
}

// claimHold is what a claimer does with one claim.
type claimHold struct {
	rec    *Recorder
	book   *claims.Claims
	key    string
	client int
	lease  *claims.Lease
}

// turn takes the claim, uses it, or gives it back.
func (h *claimHold) turn(ctx context.Context) {
	op := Op{Client: h.client, Key: h.key}
	if h.lease == nil {
		op.Kind, op.Call = Take, time.Now().UnixNano()
		one, cancel := context.WithTimeout(ctx, claimTTL)
		lease, err := h.book.TryAcquire(one, h.key)
		cancel()
		if err != nil { // held, or nobody answers: a lease that nobody has is no lease
			return
		}
		h.lease = lease
		op.N, op.Outcome, op.Return = lease.Number(), OK, time.Now().UnixNano()
		h.rec.Add(op)
		return
	}
	op.N = h.lease.Number()
	if rand.IntN(60) == 0 {
		op.Kind = Release
		h.rec.Do(op, func(o *Op) {
			one, cancel := context.WithTimeout(ctx, claimTTL)
			defer cancel()
			o.Outcome = OK
			if err := h.lease.Release(one); err != nil {
				o.Outcome, o.Error = Unknown, err.Error()
			}
		})
		h.lease = nil
		return
	}
	op.Kind, op.Call = Use, time.Now().UnixNano()
	if !h.lease.Valid() {
		h.lease = nil
		return
	}
	op.Outcome, op.Return = OK, time.Now().UnixNano()
	h.rec.Add(op)
}
