package guides_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/e2e/kit"
	"github.com/droverhq/drover/schemas"
)

// patience bounds whatever has no bound of its own. The machine may be busy with other packages.
const patience = 60 * time.Second

// serve starts the binary beside a NATS server, as the guide's user for that, until the test ends.
func serve(t *testing.T, url string) { t.Helper(); serveAs(t, url, "server") }

// serveAs is serve as another user.
func serveAs(t *testing.T, url, user string, args ...string) {
	t.Helper()
	args = append([]string{"server", "--json", "--context", user, "--log-level", "warn"}, args...)
	cmd := exec.Command(binary, args...)
	cmd.Env = append(cmd.Environ(), "XDG_CONFIG_HOME="+contexts(t, url, user))
	server := kit.Start(t, filepath.Join(t.TempDir(), user+".log"), cmd)
	t.Cleanup(func() {
		server.Stop(patience)
		log, err := os.ReadFile(server.Log)
		if err != nil || strings.Contains(ofTheNamespace(string(log)), "permission") {
			t.Errorf("the server %s was refused what it needs: %v", user, err)
		}
	})
	server.Ready(patience, nil)
}

// ofTheNamespace is a log without its lines about the namespace other, which an operator makes and deletes meanwhile: servers try
// to serve that too, and the users of one namespace may not.
func ofTheNamespace(log string) string {
	var about strings.Builder
	for line := range strings.Lines(log) {
		if !strings.Contains(line, "drover.other.") && !strings.Contains(line, "drover-other-") {
			about.WriteString(line)
		}
	}
	return about.String()
}

// as connects a client as one of the guide's users.
func as(t *testing.T, url, user string) *drover.Client {
	t.Helper()
	c, err := drover.Connect(t.Context(), &drover.Options{URL: url, User: user, Password: user + "-secret", InboxPrefix: "_INBOX." + user})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// plain connects as one of the guide's users without anything of Drover.
func plain(t *testing.T, url, user string) (*nats.Conn, chan error) {
	t.Helper()
	refused := make(chan error, 64)
	nc, err := nats.Connect(url, nats.UserInfo(user, user+"-secret"), nats.CustomInboxPrefix("_INBOX."+user),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc, refused
}

// run runs a worker until the test ends.
func run(t *testing.T, worker func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- worker(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("a worker ended with %v", err)
		}
	})
}

// The users of the guide can do their work: a workflow with everything in it that needs a right.
func TestRightsSuffice(t *testing.T) {
	url := startNATS(t)
	serve(t, url)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	deciders := as(t, url, "decider").Deciders(nil)
	deciders.Register("order", decider.Func(decide))
	run(t, deciders.Run)
	workers := as(t, url, "worker").Activities(&activity.Options{Lists: []string{"billing"}})
	activity.Register(workers, "charge", func(ctx context.Context, text string) (string, error) {
		return strings.Repeat(text, 2), activity.Heartbeat(ctx, "half done")
	})
	run(t, workers.Run)

	client := as(t, url, "client")
	large := strings.Repeat("x", schemas.PayloadThreshold+1)
	order, err := client.Start(ctx, "order", large, &drover.StartOptions{ID: "order-1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Run("order-1", "").Signal(ctx, "note", "by the API"); err != nil {
		t.Fatal(err)
	}
	approver, _ := plain(t, url, "approver")
	js, err := jetstream.New(approver)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(ctx, "drover.default.signal.order-1.approve", []byte(`"Ada"`)); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := order.Result(ctx, &got); err != nil || got != strings.Repeat(large, 4) {
		t.Fatalf("got %d bytes and %v, want %d", len(got), err, 4*len(large))
	}
	look(ctx, t, as(t, url, "viewer"))
	operate(t, url)
}

// decide charges twice, the second time at most once, after a note and an approval.
func decide(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
	view, err := task.View(ctx)
	if err != nil {
		return nil, err
	}
	first, paid, _ := view.Activity("first")
	second, twice, reason := view.Activity("second")
	switch {
	case second == decider.ActivitySucceeded:
		return []schemas.Decision{decider.Complete(twice)}, nil
	case first.Closed() && first != decider.ActivitySucceeded, second.Closed():
		return []schemas.Decision{decider.Fail(reason, nil)}, nil
	case first == 0:
		return []schemas.Decision{decider.Schedule("first", "charge", view.Input(), decider.List("billing"))}, nil
	case first.Closed() && second == 0 && len(view.Signals("note")) > 0 && len(view.Signals("approve")) > 0:
		return []schemas.Decision{decider.Schedule("second", "charge", paid, decider.List("billing"), decider.NotIdempotent(), decider.Priority(1))}, nil
	}
	return nil, nil
}

// look does what a viewer may.
func look(ctx context.Context, t *testing.T, c *drover.Client) {
	t.Helper()
	r := c.Run("order-1", "")
	if _, err := r.Describe(ctx); err != nil {
		t.Error(err)
	}
	if _, err := r.Why(ctx); err != nil {
		t.Error(err)
	}
	if err := r.Result(ctx, nil); err != nil {
		t.Error(err)
	}
	for _, err := range r.History(ctx, drover.HistoryOptions{}) {
		if err != nil {
			t.Error(err)
		}
	}
	for _, err := range c.List(ctx, drover.ListOptions{}) {
		if err != nil {
			t.Error(err)
		}
	}
	if err := c.Run("order-1", "").Terminate(ctx, nil); !errors.Is(err, drover.ErrPermission) {
		t.Errorf("a viewer terminates: got %v, want %v", err, drover.ErrPermission)
	}
}

// operate runs every command that needs no argument, and some others, as the operator.
func operate(t *testing.T, url string) {
	t.Helper()
	home := contexts(t, url, "operator")
	for _, args := range []string{
		"list", "count", "tasklist list", "dead", "type list", "namespace list", "namespace describe default", "describe order-1", "why order-1",
		"start order --id order-2", "pause order-2", "resume order-2", "signal order-2 note", "cancel order-2", "terminate order-2",
		"type register workflow order", "namespace create other", "namespace delete other --yes", "history order-1",
	} {
		if r := runAs(t, home, "operator", args); r.Code != 0 {
			t.Errorf("drover %s: got %+v", args, r)
		}
	}
}

// runAs runs a command with the contexts in home to its end.
func runAs(t *testing.T, home, user, args string) kit.Result {
	t.Helper()
	cmd := exec.Command(binary, append(strings.Fields(args), "--context", user)...)
	cmd.Env = append(cmd.Environ(), "XDG_CONFIG_HOME="+home)
	return kit.Run(t, cmd)
}

// contexts writes a context of the nats command line for each user, and returns the folder of configurations.
func contexts(t *testing.T, url string, users ...string) (home string) {
	t.Helper()
	home = t.TempDir()
	dir := filepath.Join(home, "nats", "context")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, user := range users {
		text := fmt.Sprintf(`{"url":%q,"user":%q,"password":"%s-secret","inbox_prefix":"_INBOX.%s"}`, url, user, user, user)
		if err := os.WriteFile(filepath.Join(dir, user+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// What a user has no business with is refused by the NATS server, whatever program it uses.
func TestRightsAreNotMore(t *testing.T) {
	url := startNATS(t)
	const publish, subscribe = "publish", "subscribe"
	// Nobody but the servers touches these.
	inner := []string{
		"drover.default.history.0.order-1.run", "drover.default.in.0.order-1.start", "drover.default.in.0.order-1.ring", "drover.default.alarm.0.order-1.run",
		"drover.default.task.billing.0", "drover.default.owner.0", "drover.default.dead.unknown", "drover.default.sig.0.order-1.approve",
		"$KV.drover-default-claims.partition.0", "$KV.drover-default-checkpoints.0", "$KV.drover-nodes.n", "$O.drover-default-payloads.M.x",
		"$JS.API.STREAM.LIST", "$JS.API.STREAM.CREATE.x", "$JS.API.STREAM.DELETE.drover-default-history-0", "$JS.API.STREAM.PURGE.drover-default-in-0",
		"$JS.API.STREAM.MSG.GET.drover-default-history-0", "$JS.API.DIRECT.GET.drover-default-history-0",
		"$JS.API.CONSUMER.CREATE.drover-default-history-0.x", "$JS.API.CONSUMER.DELETE.drover-default-tasks-billing.workers",
		"_INBOX.server.x", "drover-server.changed", "drover.other.api.start",
	}
	heard := []string{
		">", "drover.>", "drover.default.>", "drover.default.api.start", "drover.default.in.>", "drover.default.history.>", "drover.default.decide.>",
		"drover.default.task.>", "drover.default.signal.>", "_INBOX.>", "_INBOX.server.>", "_INBOX.nobody.>", "$JS.>", "$KV.>", "drover-server.>",
	}
	for user, tt := range map[string]struct{ publish, subscribe []string }{
		"operator": {publish: []string{"drover.default.announce.order", "drover.default.signal.order-1.approve", "drover.default.in.0.o.act.billing"}},
		"client": {
			publish: []string{"drover.default.api.terminate", "drover.default.api.list", "drover.default.api.history", "drover-server.namespace.delete"},
		},
		"viewer": {publish: []string{
			"drover.default.api.start", "drover.default.api.signal", "drover.default.api.cancel", "drover.default.api.terminate",
			"drover.default.api.pause", "drover.default.api.upload", "drover.default.api.typeRegister", "drover-server.namespace.list",
		}},
		"decider": {
			publish:   []string{"drover.default.announce.other", "drover.default.api.start", "drover.default.in.0.o.act.billing", "_INBOX.client.x"},
			subscribe: []string{"drover.default.decide.other", "drover.default.control.*"},
		},
		"worker": {
			publish: []string{
				"drover.default.in.0.o.act.other", "drover.default.outcome.0.o.other", "drover.default.beat.0.o.other", "$JS.API.CONSUMER.MSG.NEXT.drover-default-tasks-other.workers",
				"$JS.ACK.drover-default-tasks-other.workers.1.1.1.1.0", "drover.default.api.start", "drover.default.api.history", "drover.default.signal.o.approve",
			},
			subscribe: []string{"drover.default.decide.order"},
		},
		"approver": {publish: []string{"drover.default.signal.order-1.reject", "drover.default.api.signal", "drover.default.api.start"}},
	} {
		t.Run(user, func(t *testing.T) {
			nc, refused := plain(t, url, user)
			forbidden := inner
			if user == "operator" { // who may remove the record of a dead node
				forbidden = slices.DeleteFunc(slices.Clone(inner), func(s string) bool { return s == "$KV.drover-nodes.n" })
			}
			for kind, subjects := range map[string][]string{
				publish: slices.Concat(forbidden, tt.publish), subscribe: slices.Concat(heard, tt.subscribe),
			} {
				for _, s := range subjects {
					if kind == publish {
						mustDo(t, nc.Publish(s, nil))
					} else {
						_, err := nc.SubscribeSync(s)
						mustDo(t, err)
					}
					select {
					case err := <-refused:
						if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), fmt.Sprintf("%q", s)) {
							t.Errorf("%s %q: got %v, want a violation of permissions", kind, s, err)
						}
					case <-time.After(patience):
						t.Fatalf("%s may %s %q", user, kind, s)
					}
				}
			}
		})
	}
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
