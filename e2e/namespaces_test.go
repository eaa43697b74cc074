package e2e

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/e2e/kit"
	"github.com/droverhq/drover/schemas"
)

// tenantUser is a NATS user who may do everything that a client and a worker of one namespace need, and nothing else.
func tenantUser(ns string) *server.User {
	return &server.User{
		Username: ns, Password: ns,
		Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: []string{
				"drover." + ns + ".api.*", "drover." + ns + ".signal.*.*", "drover." + ns + ".announce.*", "drover." + ns + ".in.*.*.act.words",
				"drover." + ns + ".outcome.*.*.words", "drover." + ns + ".beat.*.*.words", "$JS.API.STREAM.INFO.drover-" + ns + "-tasks-words",
				"$JS.API.CONSUMER.*.drover-" + ns + "-tasks-words.>", "$JS.API.CONSUMER.MSG.NEXT.drover-" + ns + "-tasks-words.>",
				"$JS.ACK.drover-" + ns + "-tasks-words.>", "_INBOX_" + ns + ".>", "_INBOX.>",
			}},
			Subscribe: &server.SubjectPermission{Allow: []string{"drover." + ns + ".decide.>", "drover." + ns + ".control.*", "_INBOX_" + ns + ".>"}},
		},
	}
}

// tenancy is a NATS server with users, one for each of two namespaces, and a server of Drover that serves both.
func tenancy(t *testing.T) (url string) {
	t.Helper()
	port := kit.FreePort(t)
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: folder(t), NoSigs: true, NoLog: true,
		Users: []*server.User{{Username: "drover", Password: "drover"}, tenantUser("east"), tenantUser("west")},
	})
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the NATS server does not get ready")
	}
	url = s.ClientURL()
	p := spawn(t, folder(t), "server", exec.Command(binary, "server", "--json", "--nats", url, "--user", "drover", "--password", "drover"))
	p.Ready(patience, nil)
	t.Cleanup(func() { p.Stop(patience) })
	return url
}

func as(t *testing.T, url, user, ns string) *drover.Client {
	t.Helper()
	c, err := drover.Connect(t.Context(), &drover.Options{
		URL: url, User: user, Password: user, Namespace: ns, InboxPrefix: "_INBOX_" + user, Timeout: 2 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// One server, two tenants with a NATS user each: each works in its own namespace and cannot see, change or disturb the other's.
func TestTenantsAreKeptApart(t *testing.T) {
	url := tenancy(t)
	root := as(t, url, "drover", "")
	for _, ns := range []string{"east", "west"} {
		if _, err := root.CreateNamespace(t.Context(), ns, &drover.NamespaceOptions{Partitions: 2}); err != nil {
			t.Fatal(err)
		}
		c := as(t, url, ns, ns)
		stop := serveTenant(t, c, ns)
		defer stop()
	}
	for _, ns := range []string{"east", "west"} {
		run, err := as(t, url, ns, ns).Start(t.Context(), "greet", ns, &drover.StartOptions{ID: "same"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var got string
		if out, err := run.Wait(ctx); err != nil || out.Result.Decode(&got) != nil || got != ns+" greets "+ns {
			t.Fatalf("%s: got %q, %+v, %v", ns, got, out, err)
		}
	}
	thief := as(t, url, "east", "west")
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, drover.ErrPermission) {
			t.Errorf("%s: got %v, want %v", what, err, drover.ErrPermission)
		}
	}
	_, err := thief.Run("same", "").Describe(t.Context())
	refused("describe", err)
	_, err = thief.Start(t.Context(), "greet", "x", nil)
	refused("start", err)
	refused("signal", thief.Run("same", "").Signal(t.Context(), "go", nil))
	for _, err := range thief.List(t.Context(), drover.ListOptions{}) {
		refused("list", err)
	}
	_, err = thief.DescribeNamespace(t.Context(), "west")
	refused("describe the namespace", err)
	refused("delete the namespace", thief.DeleteNamespace(t.Context(), "west", &drover.DeleteNamespaceOptions{Force: true}))
	_, err = thief.CreateNamespace(t.Context(), "south", nil)
	refused("create a namespace", err)
	refusedByNATS(t, url)
	if n := len(collect(t, root.ListNamespaces(t.Context()))); n != 3 {
		t.Fatalf("got %d namespaces, want 3", n)
	}
}

func collect[T any](t *testing.T, seq func(func(T, error) bool)) (all []T) {
	t.Helper()
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// refusedByNATS tries with plain NATS what no client of Drover would.
func refusedByNATS(t *testing.T, url string) {
	t.Helper()
	denied := make(chan error, 64)
	nc, err := nats.Connect(url, nats.UserInfo("east", "east"), nats.CustomInboxPrefix("_INBOX_east"), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err }))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	tries := 0
	for _, subj := range []string{
		"drover.west.>", "drover.>", "drover.west.decide.greet", "drover.west.owner.*", "drover.*.api.start", "drover-server.>", "_INBOX_west.>",
		"_INBOX.>", "$KV.drover-west-claims.>", "$JS.ACK.>",
	} {
		if _, err := nc.SubscribeSync(subj); err != nil {
			t.Fatal(err)
		}
		tries++
	}
	for _, subj := range []string{
		"drover.west.api.start", "drover.west.signal.same.go", "drover.west.history.0.same.run", "drover.west.in.0.same.start",
		"drover.west.in.0.same.act.words", "drover.west.task.words.5", "drover.west.control.vm", "drover.east.history.0.same.run",
		"$KV.drover-west-claims.partition.0", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.INFO.drover-west-history-0",
		"$JS.API.STREAM.MSG.GET.drover-west-history-0", "$JS.API.DIRECT.GET.drover-west-history-0", "$JS.API.STREAM.DELETE.drover-west-signals",
		"$JS.API.CONSUMER.CREATE.drover-west-history-0", "$JS.API.CONSUMER.MSG.NEXT.drover-west-tasks-words.workers",
		"$JS.API.STREAM.CREATE.drover-east-mine", "drover-server.namespace.delete", "drover-server.changed",
	} {
		if err := nc.PublishRequest(subj, "_INBOX_east.x", []byte("{}")); err != nil {
			t.Fatal(err)
		}
		tries++
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	for range tries {
		select {
		case err := <-denied:
			if !strings.Contains(strings.ToLower(err.Error()), "permissions violation") {
				t.Errorf("got %v, want a permissions violation", err)
			}
		case <-time.After(patience):
			t.Fatalf("fewer than %d attempts were refused", tries)
		}
	}
}

// serveTenant runs the deciders and activities of a tenant, with its user's rights.
func serveTenant(t *testing.T, c *drover.Client, ns string) (stop func()) {
	t.Helper()
	deciders := c.Deciders(nil)
	deciders.Register("greet", decider.Func(func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
		v, err := task.View(ctx)
		if err != nil {
			return nil, err
		}
		switch status, said, reason := v.Activity("hello"); {
		case status == 0:
			return []schemas.Decision{decider.Schedule("hello", "hello", v.Input(), decider.List("words"))}, nil
		case status == decider.ActivitySucceeded:
			return []schemas.Decision{decider.Complete(said)}, nil
		case status.Closed():
			return []schemas.Decision{decider.Fail(reason, nil)}, nil
		}
		return nil, nil
	}))
	activities := c.Activities(&activity.Options{Lists: []string{"words"}})
	activity.Register(activities, "hello", func(_ context.Context, name string) (string, error) { return ns + " greets " + name, nil })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for _, run := range []func(context.Context) error{deciders.Run, activities.Run} {
		go func() { ended <- run(ctx) }()
	}
	return func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Errorf("worker of %s: %v", ns, err)
			}
		}
	}
}
