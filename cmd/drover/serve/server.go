package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/internal/memlimit"
	"github.com/droverhq/drover/server"
)

// ServerFlags are those of server and dev.
type ServerFlags struct {
	store, profile, host, node string
	indexDir                   string
	memory, onlyNamespace      bool
	port, maxPayload           int
	partitions, replicas       int
	maxEvents                  int64
	maxBytes, indexMemory      cli.SizeFlag
	roles                      []string
	claimTTL, drain            cli.DurationFlag
	afterCrash                 string
	recycleExit                bool
	metrics                    metricsFlags
	cluster                    clusterFlags
	// for somebody who tries things out: the ready line says what to type next
	dev bool
}

func ServerCommand(a *cli.App) *cobra.Command {
	var f ServerFlags
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run a server, with an embedded NATS or beside one elsewhere",
		Long: `Run a server with all its roles: broker, timers, ops, flows. The last one runs the
flows that are deployed, if there are any; more processes for them are started with "drover worker
--flows".

Without --nats or --context it holds a NATS server of its own, which keeps everything in --store
and listens on --host and --port. That server has no authentication: keep it on loopback. With one
of the two the roles work on a NATS server or cluster elsewhere; start as many as you like.

Profile single survives a power cut: what is acknowledged to clients and workers is synced before,
and tasks and alarms are repeated from the histories. Profile dev syncs once a second.

With --cluster-name it is one node of a cluster, usually of three: profile cluster. Every write is
synced by most nodes before it is acknowledged, so that the loss of one, or a power cut of all,
loses nothing. Start one server on each host with the same --cluster-name and --routes and a
--store of its own, in any order: each waits for the others. While a node sees less than half of
the cluster it refuses requests. A store stays with the cluster, and with the server name, that it
was first started with.

It makes --namespace if it is missing, and serves every other namespace too, those that are made
later as well; with --only-namespace it keeps to the one.

SIGTERM, SIGINT and "drover drain" stop it: it takes no more work, finishes what runs for as long
as --drain-timeout allows, hands its partitions over and leaves. A second signal cuts that short.

It ends with an error and exit code 1 when its store can be written again only after a start: a
disk that was full has room again, or a write has failed. Have something start it again then, as a
service of systemd with Restart=on-failure.

With --metrics it tells Prometheus at http://ADDRESS/metrics what it does. There are no passwords
there, so the address is on loopback unless --metrics-public says that others may read them.

With "drover recycle" its roles are drained and begin anew once a day, in the same process; what
clients ask in between waits. With --recycle-exit the process ends instead, with exit code 75, and
something else is to start it again.

A node that did not end properly, and is started again under its name, says so in its log and goes
on. With --after-crash halt its roles wait for "drover node ack"; the embedded NATS server runs
meanwhile, so that one can look.`,
		Example: `  drover server --store /var/lib/drover
  drover server --store /var/lib/drover --host 10.0.0.1 --cluster-name prod --cluster-host 10.0.0.1 \
      --routes nats://10.0.0.1:6222,nats://10.0.0.2:6222,nats://10.0.0.3:6222
  drover server --nats nats://n1:4222,nats://n2:4222 --replicas 3`,
		Args: cli.ArgNames(),
		RunE: func(cmd *cobra.Command, _ []string) error { return runServer(a, cmd, &f) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.store, "store", "./drover-data", "folder of the embedded server's store")
	fs.BoolVar(&f.memory, "memory", false,
		"keep everything in memory instead; it ends with the process")
	fs.StringVar(&f.profile, "profile", "",
		"durability of the embedded server: single, dev or cluster (default single; dev with "+
			"--memory; cluster with --cluster-name)")
	fs.IntVar(&f.replicas, "replicas", 0,
		"servers of the NATS cluster that hold each stream: 1, 3 or 5 (default what the "+
			"namespace has, or 1; 3 with --cluster-name)")
	f.maxBytes.Unlimited = true
	fs.Var(&f.maxBytes, "max-bytes",
		"limit of each stream of --namespace, such as 1GiB, at least 16MiB; NONE takes it away "+
			"(default what the namespace has, or none)")
	f.cluster.register(fs)
	f.register(cmd)
	return cmd
}

// register adds the flags that server and dev share.
func (f *ServerFlags) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	f.claimTTL.Some, f.drain.Some = true, true
	fs.StringVar(&f.host, "host", "127.0.0.1", "address to listen on")
	fs.IntVar(&f.port, "port", 4222, "port to listen on; 0 or -1 takes a free one")
	fs.StringSliceVar(&f.roles, "roles", nil,
		"roles of this process: "+strings.Join(server.Roles(), ",")+" (default all)")
	fs.IntVar(&f.partitions, "partitions", 0,
		"partitions of a new namespace (default what the namespace has, or 4)")
	fs.Int64Var(&f.maxEvents, "max-events", 0,
		"events after which a history may not grow; say the same on every server (default 50000)")
	fs.BoolVar(&f.onlyNamespace, "only-namespace", false,
		"serve no namespace but that of --namespace")
	fs.Var(&f.claimTTL, "claim-ttl", "how long a crashed server keeps its partitions (default 10s)")
	fs.Var(&f.drain, "drain-timeout", "how long a planned stop may wait for what runs (default 5m)")
	fs.StringVar(&f.afterCrash, "after-crash", server.AfterCrashRecover,
		"when this node did not end properly last time: recover, or halt until \"drover node ack NODE\"")
	fs.BoolVar(&f.recycleExit, "recycle-exit", false,
		"in a recycle, end the process with exit code 75 instead of restarting the roles in it")
	fs.StringVar(&f.indexDir, "index-dir", "",
		"folder for snapshots of the indexes of runs, with the role ops (default index in --store)")
	fs.Var(&f.indexMemory, "index-memory",
		"memory for the indexes of runs, with the role ops; above it the oldest closed runs leave "+
			"them (default a quarter of the machine, at most 1GiB)")
	fs.StringVar(&f.node, "node", "",
		"name of this node (default the host name, with a number while a live node has it)")
	f.metrics.register(fs)
	fs.IntVar(&f.maxPayload, "max-payload", 0,
		"largest message of the embedded server in bytes (default 1 MiB)")
}

// anyPort asks for a free one. 0 would mean the default to package embedded.
const anyPort = -1

// onlyEmbedded and OnlyExternal are flags that say something to one kind of server alone.
var (
	onlyEmbedded = append([]string{
		"store", "memory", "profile", "host", "port", "max-payload", "cluster-name",
	}, clusterFlagNames...)
	OnlyExternal = []string{"creds", "nkey", "user", "password", "tlsca", "tlscert", "tlskey"}
)

// Options turns the flags into server.Options. Whatever would be ignored is refused.
func (f *ServerFlags) Options(a *cli.App, cmd *cobra.Command) (*server.Options, error) {
	fs := cmd.Flags()
	external := a.External(fs)
	with, without := OnlyExternal, "which needs --nats or --context"
	if external {
		with, without = onlyEmbedded, "which goes with an embedded server, not with --nats or --context"
	}
	if err := cli.RefuseFlags(cmd, with, without); err != nil {
		return nil, err
	}
	if f.memory && fs.Changed("store") {
		return nil, cli.Usage(cmd,
			fmt.Errorf("--memory and --store exclude each other: leave out one of them"))
	}
	if !external {
		if err := f.checkCluster(cmd); err != nil {
			return nil, cli.Usage(cmd, err)
		}
	}
	o := &server.Options{
		Namespace: a.Namespace, OnlyNamespace: f.onlyNamespace, Roles: f.roles,
		Partitions: f.partitions, Replicas: f.replicas,
		MaxBytes: f.maxBytes.Value, MaxEvents: f.maxEvents, ClaimTTL: f.claimTTL.Value,
		Node: f.node, AfterCrash: f.afterCrash, DrainTimeout: f.drain.Value,
		RecycleExit: f.recycleExit, IndexDir: f.indexDir, IndexMemory: f.indexMemory.Value,
		Version: cli.VersionName(),
	}
	if external {
		at, err := a.DialOptions()
		o.External = &at
		return o, err
	}
	o.Embedded = embedded.Options{
		StoreDir: f.store, Host: f.host, Port: cmp.Or(f.port, anyPort), MaxPayload: f.maxPayload,
	}
	if f.memory {
		o.Embedded.StoreDir = ""
	}
	f.cluster.options(&o.Embedded, f.node)
	switch f.profile {
	case "":
	case "dev":
		o.Embedded.Profile = embedded.ProfileDev
	case "single":
		o.Embedded.Profile = embedded.ProfileSingle
	case "cluster":
		o.Embedded.Profile = embedded.ProfileCluster
	default:
		return nil, cli.Usage(cmd,
			fmt.Errorf("--profile is %q: use single, dev or cluster", f.profile))
	}
	return o, nil
}

// runServer runs the server until a signal, and prints the ready line.
func runServer(a *cli.App, cmd *cobra.Command, f *ServerFlags) error {
	if err := cli.RefuseTimeout(cmd); err != nil {
		return err
	}
	o, err := f.Options(a, cmd)
	if err != nil {
		return err
	}
	if a.Service = true; !f.dev {
		a.DefaultLevel = logrus.InfoLevel
	}
	if o.Logger, err = a.Logger(); err != nil {
		return err
	}
	memlimit.Ballast()
	cli.Widen(o.Logger)
	ctx, hurry, done := OnSignals(cmd.Context())
	defer done()
	o.Hurry = hurry
	shown, err := f.metrics.listen(cmd, o)
	if err != nil {
		return err
	}
	defer shown.Close()
	s, err := server.New(*o)
	if err != nil {
		return cli.Usage(cmd, cli.InFlags(err))
	}
	ctx, end := context.WithCancel(ctx)
	var told sync.WaitGroup
	told.Go(func() {
		info, err := s.Ready(context.WithoutCancel(ctx))
		if err != nil {
			return // as Run says
		}
		if err := serverReady(a, info, f.dev); err != nil {
			o.Logger.WithError(err).Warn("the ready line cannot be written")
		}
		memlimit.Keep(ctx)
	})
	told.Go(func() { shown.serve(ctx, o.Logger) })
	err = s.Run(ctx)
	end()
	told.Wait()
	return cli.InFlags(err)
}

func serverReady(a *cli.App, info server.Info, dev bool) (err error) {
	switch {
	case a.JSON:
		return a.Document(info)
	case dev:
		_, err = fmt.Fprintln(a.Stderr, devLine(info))
	default:
		_, err = fmt.Fprintln(a.Stderr, ReadyLine(info))
	}
	return err
}

// ReadyLine is the ready line for people.
func ReadyLine(r server.Info) string {
	store := ""
	switch {
	case r.Store != "":
		store = ", store " + r.Store
	case r.Profile != "external":
		store = ", store in memory"
	}
	if r.Cluster != "" {
		store = fmt.Sprintf(" (server %s of %s, %s, %s)%s", r.Server, r.Cluster,
			cli.Counted(r.Size, "node", "nodes"), cli.Counted(r.Replicas, "replica", "replicas"),
			store)
	}
	return fmt.Sprintf(
		"drover is ready: namespace %s with %s, node %s as %s, profile %s%s; connect with --nats %s",
		r.Namespace,
		cli.Counted(r.Partitions, "partition", "partitions"),
		r.Node,
		strings.Join(r.Roles, "+"),
		r.Profile,
		store,
		r.URL,
	)
}

// Doubled is how close two signals must follow each other to be one: wrappers such as timeout and
// make send a signal to the process and to its group.
const Doubled = 500 * time.Millisecond

// OnSignals ends ctx at the first SIGTERM or SIGINT and closes hurry at the second.
func OnSignals(parent context.Context) (ctx context.Context, hurry <-chan struct{}, done func()) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	ctx, hurry, end := heed(parent, signals)
	return ctx, hurry, func() {
		signal.Stop(signals)
		end()
	}
}

// heed is OnSignals for signals from anywhere.
func heed(
	parent context.Context, signals <-chan os.Signal,
) (ctx context.Context, hurry <-chan struct{}, done func()) {
	ctx, cancel := context.WithCancelCause(parent)
	over, cut := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		var first time.Time
		for {
			select {
			case s := <-signals:
				if first.IsZero() {
					first = time.Now()
					cancel(errors.New("signal " + s.String()))
				} else if time.Since(first) >= Doubled {
					close(cut)
					return
				}
			case <-over:
				return
			}
		}
	})
	return ctx, cut, func() {
		close(over)
		wg.Wait()
		cancel(nil)
	}
}
