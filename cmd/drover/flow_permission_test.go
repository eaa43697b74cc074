package main

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/ops/permissions"
)

// What the templates allow is enough for the commands, and not for more: an operator deploys, a viewer looks, and nobody who may deploy can
// empty the bucket.
func TestFlowPermissions(t *testing.T) {
	var users []embeddedtest.User
	for _, role := range []permissions.Role{permissions.Operator, permissions.Viewer} {
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
	_, url := embeddedtest.Start(t, true, users...)
	root, err := post.Dial(t.Context(), post.Options{URL: url, User: embeddedtest.Root, Password: embeddedtest.Password})
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
	if r := as(permissions.Operator, "flow", "deploy", "greet.yaml", "order.yaml"); r.code != exitDone {
		t.Fatalf("got %+v, want both deployed", r)
	}
	for _, args := range [][]string{{"flow", "list"}, {"flow", "show", "order"}, {"flow", "graph", "order"}, {"flow", "validate", "order.yaml", "--registered"}, {"flow", "deploy", "order.yaml", "--dry-run"}} {
		if r := as(permissions.Viewer, args...); r.code != exitDone || r.stdout == "" {
			t.Errorf("%v: got %+v, want an answer", args, r)
		}
	}
	bucket := subject.Namespace("default").BucketFlows()
	if err := writeFile("order.yaml", "name: order\nsteps: [no-op]\n"); err != nil {
		t.Fatal(err)
	}
	as(permissions.Viewer, "flow", "deploy", "order.yaml").want(t, exitFailed, "", "not permitted", fmt.Sprintf(`"$KV.%s.flow.order.`, bucket))

	operator, err := post.Dial(t.Context(), post.Options{URL: url, User: string(permissions.Operator), Password: embeddedtest.Password})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(operator.Close)
	_, err = operator.PublishSync(t.Context(), "$KV."+bucket+".flow.order.current", post.Header{jetstream.MsgRollup: {jetstream.MsgRollupAll}}, nil)
	if err == nil {
		t.Error("an operator may empty the bucket of flows with one message")
	}
	if r := as(permissions.Viewer, "flow", "show", "order"); r.code != exitDone {
		t.Errorf("got %+v, want what was there", r)
	}
}
