package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/e2e/kit"
	"github.com/droverhq/drover/ops/permissions"
)

// templates makes users of roles.
func templates(t *testing.T, roles ...permissions.Role) (users []embeddedtest.User) {
	t.Helper()
	for _, role := range roles {
		tpl, err := permissions.For(permissions.Options{Role: role})
		if err != nil {
			t.Fatal(err)
		}
		u := embeddedtest.User{Name: string(role), Subscribe: []string{"_INBOX.>"}}
		for _, g := range tpl.Grants {
			u.Publish, u.Subscribe = append(u.Publish, g.Publish...), append(u.Subscribe, g.Subscribe...)
		}
		users = append(users, u)
	}
	return users
}

// The templates of a server and of a decider are enough to run what an operator deploys; without the right to read the bucket a server
// runs on, and a worker says what it lacks.
func TestFlowRunningPermissions(t *testing.T) {
	flowFiles(t, map[string]string{"f.yaml": "name: f\nsteps:\n- return ${workflow.name}\n"})
	users := templates(t, permissions.Server, permissions.Broker, permissions.Decider, permissions.Operator)
	users[2].Publish = append(users[2].Publish, "_INBOX.>") // in place of the right to answer, which these users have not
	_, url := embeddedtest.Start(t, true, append(users, embeddedtest.User{Name: "blind", Subscribe: []string{"_INBOX.>"}})...)
	as := func(user permissions.Role, args ...string) []string {
		return append(args, "--nats", url, "--user", string(user), "--password", embeddedtest.Password)
	}
	for _, tt := range []struct {
		server permissions.Role
		roles  string
		worker bool
	}{
		{permissions.Server, "broker,timers,ops,flows", false},
		{permissions.Server, "broker,timers,ops", true},
	} {
		server := spawn(t, nil, as(tt.server, "server", "--roles", tt.roles)...)
		command("", as(permissions.Operator, "flow", "deploy", "f.yaml")...).done(t)
		var worker *kit.Child
		if tt.worker {
			worker = spawn(t, nil, as(permissions.Decider, "worker", "--flows")...)
		}
		command("", as(permissions.Operator, "start", "f", "--wait", "--timeout", "1m", "--json")...).wantHolds(t, `"result":"f"`)
		if tt.worker {
			worker.Stop(patience)
			command("", as("blind", "worker", "--flows")...).want(t, cli.ExitFailed, "", "DIRECT.GET.KV_drover-default-flows", "allow the NATS user to publish")
		}
		server.Stop(patience)
	}
}

// wantHolds wants success, and a text in what was printed.
func (r result) wantHolds(t *testing.T, want string) {
	t.Helper()
	if r.code != cli.ExitDone || !strings.Contains(r.stdout, want) {
		t.Errorf("got %+v, want success with %q", r, want)
	}
}

// What the templates allow is enough for the commands, and not for more: an operator deploys, a viewer looks, and nobody who may deploy can
// empty the bucket.
func TestFlowPermissions(t *testing.T) {
	_, url := embeddedtest.Start(t, true, templates(t, permissions.Operator, permissions.Viewer)...)
	root, err := natsconn.Dial(t.Context(), natsconn.Options{URL: url, User: embeddedtest.Root, Password: embeddedtest.Password})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(root.Close)
	if _, err := topology.Ensure(t.Context(), root, topology.Options{Memory: true, Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	as := func(user permissions.Role, args ...string) result {
		return command("", append(args, "--nats", url, "--user", string(user), "--password", embeddedtest.Password)...)
	}
	flowFiles(t, someFlows)
	if r := as(permissions.Operator, "flow", "deploy", "greet.yaml", "order.yaml"); r.code != cli.ExitDone {
		t.Fatalf("got %+v, want both deployed", r)
	}
	for _, args := range [][]string{{"flow", "list"}, {"flow", "show", "order"}, {"flow", "graph", "order"}, {"flow", "validate", "order.yaml", "--registered"}, {"flow", "deploy", "order.yaml", "--dry-run"}} {
		if r := as(permissions.Viewer, args...); r.code != cli.ExitDone || r.stdout == "" {
			t.Errorf("%v: got %+v, want an answer", args, r)
		}
	}
	bucket := subject.Namespace("default").BucketFlows()
	if err := writeFile("order.yaml", "name: order\nsteps: [no-op]\n"); err != nil {
		t.Fatal(err)
	}
	as(permissions.Viewer, "flow", "deploy", "order.yaml").want(t, cli.ExitFailed, "", "not permitted", fmt.Sprintf(`"$KV.%s.flow.order.`, bucket))

	operator, err := natsconn.Dial(t.Context(), natsconn.Options{URL: url, User: string(permissions.Operator), Password: embeddedtest.Password})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(operator.Close)
	_, err = operator.PublishSync(t.Context(), "$KV."+bucket+".flow.order.current", natsconn.Header{jetstream.MsgRollup: {jetstream.MsgRollupAll}}, nil)
	if err == nil {
		t.Error("an operator may empty the bucket of flows with one message")
	}
	if r := as(permissions.Viewer, "flow", "show", "order"); r.code != cli.ExitDone {
		t.Errorf("got %+v, want what was there", r)
	}
}
