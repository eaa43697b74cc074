package guides_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/ops/permissions"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// template is the user of a role as the command prints it.
func template(t *testing.T, o permissions.Options) string {
	t.Helper()
	tpl, err := permissions.For(o)
	if err != nil {
		t.Fatal(err)
	}
	return tpl.Conf(tpl.User + "-secret")
}

// The configuration of the guide is what the templates say, word for word.
func TestConfigurationIsTheTemplates(t *testing.T) {
	conf := blocks(t, yourNATS, "conf")[0]
	for _, o := range []permissions.Options{
		{Role: permissions.Server, Namespace: permissions.AllNamespaces},
		{Role: permissions.Operator},
		{Role: permissions.Client},
		{Role: permissions.Viewer},
		{Role: permissions.Decider, Types: []string{"order"}},
		{Role: permissions.Activity, User: "worker", Lists: []string{"billing"}},
		{Role: permissions.Signaler, User: "approver", Signal: "approve"},
	} {
		var want strings.Builder
		for line := range strings.Lines(template(t, o)) {
			want.WriteString("      " + line)
		}
		if !strings.Contains(conf, want.String()) {
			t.Errorf("the guide's user of the role %s is another than the template says; put this there:\n%s", o.Role, want.String())
		}
	}
}

// roles are one user for each role, the workers of two lists, and somebody with all rights.
func roles() []permissions.Options {
	return []permissions.Options{
		{Role: permissions.Broker},
		{Role: permissions.Timer},
		{Role: permissions.Ops},
		{Role: permissions.Decider, Types: []string{"order", "part"}},
		{Role: permissions.Activity, User: "pci", Lists: []string{"PCI"}},
		{Role: permissions.Activity, User: "mail", Lists: []string{"mail"}},
		{Role: permissions.Signaler},
		{Role: permissions.Client},
		{Role: permissions.Operator},
		{Role: permissions.Viewer},
	}
}

// startRoles runs a NATS server with those users, and says where. more is put in front, such as a feature flag.
func startRoles(t *testing.T, more string) (url string) {
	t.Helper()
	return startUsers(t, more, template)
}

// startUsers is startRoles with users as conf says.
func startUsers(t *testing.T, more string, conf func(*testing.T, permissions.Options) string) (url string) {
	t.Helper()
	var users strings.Builder
	for _, o := range roles() {
		users.WriteString(conf(t, o))
	}
	return startConf(t, fmt.Sprintf("%s\njetstream {}\naccounts { DROVER { jetstream: enabled, users: [\n%s{ user: root, password: root-secret }\n] } }\n", more, users.String()))
}

// work starts the three roles of a server, each as a process with a user of its own, and the workers.
func work(t *testing.T, url string) {
	t.Helper()
	// The namespace is made by the broker: the timers have no right to.
	serveAs(t, url, "broker", "--roles", "broker", "--only-namespace", "--node", "b")
	serveAs(t, url, "timer", "--roles", "timers", "--only-namespace", "--node", "t")
	serveAs(t, url, "ops", "--roles", "ops", "--node", "o")
	deciders := as(t, url, "decider").Deciders(nil)
	deciders.Register("order", decider.Func(decideOrder))
	deciders.Register("part", decider.Func(func(context.Context, *decider.Task) ([]schemas.Decision, error) {
		return []schemas.Decision{decider.Complete("part of it")}, nil
	}))
	run(t, deciders.Run)
	for user, list := range map[string]string{"pci": "PCI", "mail": "mail"} {
		workers := as(t, url, user).Activities(&activity.Options{Lists: []string{list}, Identity: user + "-1"})
		activity.Register(workers, "charge", func(ctx context.Context, text string) (string, error) {
			return text + text, activity.Heartbeat(ctx, "half done")
		})
		run(t, workers.Run)
	}
}

// decideOrder needs everything: activities on two lists, one of them at most once, a timer, a child, a signal from outside, and
// one to another workflow.
func decideOrder(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
	view, err := task.View(ctx)
	if err != nil {
		return nil, err
	}
	charged, paid, why := view.Activity("charge")
	mailed, _, whyNot := view.Activity("mail")
	switch {
	case charged.Closed() && charged != decider.ActivitySucceeded, mailed.Closed() && mailed != decider.ActivitySucceeded:
		return []schemas.Decision{decider.Fail(why+whyNot, nil)}, nil
	case charged == 0:
		return []schemas.Decision{
			decider.Schedule("charge", "charge", view.Input(), decider.List("PCI"), decider.Priority(1)),
			decider.Schedule("mail", "charge", "m", decider.List("mail"), decider.NotIdempotent()),
			decider.Timer("nap", 50*time.Millisecond),
			decider.StartChild("part-1", "part", nil),
			decider.SignalExternal(task.Execution().WorkflowID, "self", 1),
		}, nil
	case charged.Closed() && mailed.Closed() && view.Timer("nap") == decider.TimerFired && view.ChildrenDone("part-1") &&
		len(view.Signals("approve")) > 0 && len(view.Signals("self")) > 0:
		return []schemas.Decision{decider.Complete(paid)}, nil
	}
	return nil, nil
}

// Each role does its work with what its template allows, whichever form of acknowledgements the server uses.
func TestTemplatesSuffice(t *testing.T) {
	for name, more := range map[string]string{"acks": "", "acks v2": "feature_flags { js_ack_fc_v2: true }"} {
		t.Run(name, func(t *testing.T) { templatesSuffice(t, startRoles(t, more)) })
	}
}

func templatesSuffice(t *testing.T, url string) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	work(t, url)
	client := as(t, url, "client")
	large := strings.Repeat("x", schemas.PayloadThreshold+1)
	order, err := client.Start(ctx, "order", large, nil)
	if err != nil {
		t.Fatal(err)
	}
	nc, _ := plain(t, url, "signaler")
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(ctx, "drover.default.signal."+order.ID+".approve", []byte(`"Ada"`)); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := order.Result(ctx, &got); err != nil || got != large+large {
		t.Fatalf("got %d bytes and %v, want %d", len(got), err, 2*len(large))
	}
	home := contexts(t, url, "operator", "viewer")
	for user, commands := range map[string][]string{
		"operator": {
			"list", "tasklist list", "namespace describe default", "start order --id o2", "pause o2", "resume o2", "terminate o2",
			"namespace create other --partitions 1", "namespace delete other --yes", "history " + order.ID, "node list", "claims", "drain pci-1", "drain t",
		},
		"viewer": {"list", "count", "tasklist list", "dead", "type list", "describe " + order.ID, "why " + order.ID, "history " + order.ID, "result " + order.ID},
	} {
		for _, args := range commands {
			if r := runAs(t, home, user, args); r.Code != 0 {
				t.Errorf("%s: drover %s: got %d\n%.1000s%s", user, args, r.Code, r.Stdout, r.Stderr)
			}
		}
	}
	job, err := as(t, url, "operator").Bulk(ctx, ops.BulkTerminate, "type = 'order'", nil)
	if err != nil {
		t.Fatal(err)
	}
	var acts ops.BulkState
	if err := job.Result(ctx, &acts); err != nil || acts.Runs != 2 || acts.Nothing != 2 {
		t.Errorf("the bulk job: got %+v, %v, want two runs that have ended already", acts, err)
	}
	if _, err := client.Bulk(ctx, ops.BulkTerminate, "type = 'order'", nil); !errors.Is(err, drover.ErrPermission) {
		t.Errorf("a client begins a bulk job: got %v, want that it may not", err)
	}
	// Whether all is well is not the question here: the operator sees everything that can be seen.
	report := runAs(t, home, "operator", "doctor").Stdout // its exit code says whether something is bad
	if n := strings.Count(report, "cannot be seen"); n != 1 || !strings.Contains(report, "sync         ") || !strings.Contains(report, "everything that an operator does") {
		t.Errorf("got\n%s\nwant that the operator sees all but how the NATS server syncs", report)
	}
}

// Every verb of the API is in a template, so that a new one is thought of.
func TestEveryVerbHasARole(t *testing.T) {
	url := startRoles(t, "")
	serveAs(t, url, "broker", "--roles", "broker", "--only-namespace", "--node", "b")
	nc, _ := plain(t, url, "root")
	var info struct {
		Endpoints []struct {
			Name string `json:"name"`
		} `json:"endpoints"`
	}
	for limit := time.Now().Add(patience); len(info.Endpoints) == 0; {
		m, err := nc.Request("$SRV.INFO.drover", nil, patience)
		if err == nil {
			err = json.Unmarshal(m.Data, &info)
		}
		if err != nil && time.Now().After(limit) {
			t.Fatal(err)
		}
	}
	known := permissions.Verbs(permissions.Operator)
	for _, e := range info.Endpoints {
		if !slices.Contains(known, e.Name) {
			t.Errorf("the verb %s is in no template: decide who may ask it", e.Name)
		}
	}
	for _, role := range []permissions.Role{permissions.Viewer, permissions.Client} {
		for _, v := range permissions.Verbs(role) {
			if !slices.Contains(known, v) {
				t.Errorf("%s may ask %s, which an operator may not", role, v)
			}
		}
	}
}

// attempt is what somebody tries who has got hold of a user.
type attempt struct{ publish, subscribe []string }

// What a role has no business with is refused by the NATS server, whatever program connects.
func TestTemplatesAreNotMore(t *testing.T) {
	url := startRoles(t, "")
	histories := []string{"drover.default.history.0.order-1.run", "drover.default.history.0.fence"}
	inboxes := []string{"drover.default.in.0.order-1.start", "drover.default.in.0.order-1.terminate", "drover.default.in.0.order-1.alarm", "drover.default.in.0.o.act.PCI", "drover.default.ring.0"}
	alarms := []string{"drover.default.alarm.0.order-1.run"}
	tasks := []string{"drover.default.task.PCI.0", "drover.default.owner.0", "drover.default.offer.PCI"}
	buckets := []string{"$KV.drover-default-claims.partition.0", "$KV.drover-default-checkpoints.partition.0", "$KV.drover-default-types.t", "$O.drover-default-payloads.M.x"}
	wipes := []string{
		"$JS.API.STREAM.CREATE.x", "$JS.API.STREAM.UPDATE.drover-default-signals", "$JS.API.STREAM.DELETE.drover-default-history-0",
		"$JS.API.STREAM.PURGE.drover-default-in-0", "$JS.API.STREAM.PURGE.KV_drover-default-claims", "$JS.API.STREAM.DELETE.KV_drover-default-claims",
		"$JS.API.STREAM.MSG.DELETE.drover-default-tasks-PCI", "$JS.API.STREAM.SNAPSHOT.drover-default-history-0",
	}
	reads := []string{
		"$JS.API.STREAM.MSG.GET.drover-default-history-0", "$JS.API.DIRECT.GET.drover-default-history-0", "$JS.API.DIRECT.GET.drover-default-in-0",
		"$JS.API.STREAM.MSG.GET.drover-default-tasks-PCI", "$JS.API.DIRECT.GET.OBJ_drover-default-payloads",
		"$JS.API.CONSUMER.CREATE.drover-default-history-0.x", "$JS.API.CONSUMER.CREATE.drover-default-tasks-PCI.x.drover.default.task.PCI.0",
		"$JS.API.CONSUMER.DURABLE.CREATE.drover-default-history-0.x", "$JS.API.CONSUMER.DELETE.drover-default-tasks-PCI.workers",
		"$JS.API.CONSUMER.PAUSE.drover-default-tasks-PCI.workers", "$JS.API.CONSUMER.MSG.NEXT.drover-default-history-0.x",
	}
	heard := []string{
		">", "*", "drover.>", "drover.default.>", "drover.default.api.start", "drover.default.in.>", "drover.default.history.>",
		"drover.default.task.>", "drover.default.signal.>", "_INBOX.>", "_INBOX.broker.>", "_INBOX.nobody.>", "$JS.>", "$KV.>", "$SYS.>",
	}
	nothing := slices.Concat(histories, inboxes, alarms, tasks, buckets, wipes, reads, []string{"drover.other.api.start", "_INBOX.broker.x", "$SYS.REQ.SERVER.PING"})
	foreign := []string{
		"drover.default.in.0.o.act.mail", "drover.default.outcome.0.o.mail", "drover.default.beat.0.o.mail", "$JS.API.CONSUMER.MSG.NEXT.drover-default-tasks-mail.workers",
		"$JS.ACK.drover-default-tasks-mail.workers.1.1.1.1.0", "$JS.ACK._.x.drover-default-tasks-mail.workers.1.1.1.1.0.x",
		// An acknowledgement for another list, with the name of one's own where the number of deliveries belongs.
		"$JS.ACK.drover-default-tasks-mail.workers.drover-default-tasks-PCI.1.1.1.1",
		"$JS.API.CONSUMER.INFO.drover-default-tasks-mail.workers", "$JS.API.STREAM.INFO.drover-default-tasks-mail",
	}
	verbs := func(names ...string) (all []string) {
		for _, n := range names {
			all = append(all, "drover.default.api."+n)
		}
		return all
	}
	without := func(all []string, some ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
	}
	changing := verbs("start", "signal", "cancel", "terminate", "replay", "replayForce", "pause", "resume", "typeRegister", "typeDelete", "repair")
	for user, tt := range map[string]attempt{
		"pci": {
			publish:   slices.Concat(without(nothing, inboxes[3]), foreign, changing, verbs("history", "list", "describe"), []string{"drover.default.signal.o.approve", "drover.default.control.pci-1"}),
			subscribe: append(heard, "drover.default.decide.order", "drover.default.offer.mail", "drover.default.offer.*"),
		},
		"signaler": {publish: slices.Concat(nothing, foreign, changing, verbs("history", "list", "describe", "result", "upload")), subscribe: append(heard, "drover.default.control.*", "drover.default.offer.PCI")},
		"client":   {publish: slices.Concat(nothing, foreign, verbs("cancel", "terminate", "replayForce", "pause", "list", "history"), []string{"drover-server.namespace.delete"}), subscribe: heard},
		"decider": {
			publish:   slices.Concat(nothing, foreign, changing, []string{"drover.default.announce.other", "_INBOX.client.x", "drover.default.signal.o.approve"}),
			subscribe: append(heard, "drover.default.decide.other", "drover.default.control.*", "drover.default.decide.>"),
		},
		"viewer": {
			publish: slices.Concat(nothing, foreign, changing, verbs("upload", "tasklist"),
				[]string{"drover-server.namespace.list", "drover.default.control.n", "$KV.drover-nodes.n", "drover.default.signal.o.approve"}),
			subscribe: append(heard, "drover.default.control.*"),
		},
		"operator": {publish: slices.Concat(nothing, without(foreign, "$JS.API.STREAM.INFO.drover-default-tasks-mail"), []string{"drover.default.signal.o.approve"}), subscribe: append(heard, "drover.default.control.*")},
		"timer": {
			publish: slices.Concat(histories, alarms, tasks, []string{inboxes[0], inboxes[1], inboxes[3]}, buckets[1:], wipes, without(reads),
				[]string{"drover.default.signal.o.approve", "drover.default.api.start", "drover.default.api.list", "drover.other.in.0.o.alarm"}),
			subscribe: heard,
		},
		"ops": {publish: []string{histories[0], inboxes[0], inboxes[1], "drover.default.signal.o.approve", tasks[0], alarms[0]}, subscribe: without(heard, "drover.default.api.start")},
	} {
		t.Run(user, func(t *testing.T) { refused(t, url, user, tt) })
	}
	t.Run("broker may", func(t *testing.T) {
		nc, complaints := plain(t, url, "broker")
		for _, s := range slices.Concat(histories, inboxes, alarms, tasks) {
			mustDo(t, nc.Publish(s, nil))
		}
		mustDo(t, nc.FlushTimeout(patience))
		select {
		case err := <-complaints:
			t.Fatal(err)
		default:
		}
	})
}

// refused wants a complaint about each.
func refused(t *testing.T, url, user string, tt attempt) {
	t.Helper()
	nc, complaints := plain(t, url, user)
	try := func(kind, s string, do func() error) {
		t.Helper()
		mustDo(t, do())
		select {
		case err := <-complaints:
			if !strings.Contains(err.Error(), fmt.Sprintf("%q", s)) {
				t.Errorf("%s %q: got %v, want a violation of permissions", kind, s, err)
			}
		case <-time.After(patience):
			t.Fatalf("%s may %s %q", user, kind, s)
		}
	}
	for _, s := range tt.publish {
		try("publish", s, func() error { return nc.Publish(s, nil) })
	}
	for _, s := range tt.subscribe {
		try("subscribe", s, func() error { _, err := nc.SubscribeSync(s); return err })
	}
}

// hostile are headers that mean something to JetStream. On the subjects that untrusted roles may publish to they are refused,
// or change nothing but the fate of the message itself.
var hostile = map[string]nats.Header{
	"rollup all":       {"Nats-Rollup": {"all"}},
	"rollup subject":   {"Nats-Rollup": {"sub"}},
	"ttl":              {"Nats-TTL": {"1s"}},
	"schedule":         {"Nats-Schedule": {"@every 1s"}, "Nats-Schedule-Target": {"drover.default.history.0.order-1.run"}},
	"expected stream":  {"Nats-Expected-Stream": {"drover-default-history-0"}},
	"expected last":    {"Nats-Expected-Last-Sequence": {"77"}},
	"expected subject": {"Nats-Expected-Last-Subject-Sequence": {"77"}},
	"batch":            {"Nats-Batch-Id": {"b"}, "Nats-Batch-Sequence": {"1"}, "Nats-Batch-Commit": {"1"}},
	"counter":          {"Nats-Incr": {"1"}},
}

// A header makes no permission to publish into one to delete, to schedule or to write elsewhere.
func TestHeadersGainNothing(t *testing.T) {
	url := startRoles(t, "")
	serveAs(t, url, "broker", "--roles", "broker", "--only-namespace", "--node", "b")
	root, _ := plain(t, url, "root")
	js, err := jetstream.New(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := as(t, url, "client").Start(t.Context(), "order", nil, &drover.StartOptions{ID: "order-1"}); err != nil {
		t.Fatal(err)
	}
	open := []string{"drover-default-signals", fmt.Sprintf("drover-default-in-%d", subject.Partition("order-1", 4)), "KV_drover-default-types"}
	// A signal that stays, and an outcome.
	for user, s := range map[string]string{"signaler": "drover.default.signal.order-1.approve", "pci": subject.Namespace("default").ActOutcome(subject.Partition("order-1", 4), "order-1", "PCI")} {
		nc, _ := plain(t, url, user)
		if m, err := nc.Request(s, []byte("1"), patience); err != nil || !strings.Contains(string(m.Data), `"seq"`) {
			t.Fatalf("%s: got %v, %v, want an acknowledgement", s, m, err)
		}
		for name, header := range hostile {
			before := lasts(t, js, open)
			m, err := nc.RequestMsg(&nats.Msg{Subject: s, Header: header, Data: []byte("2")}, patience)
			if err != nil || !strings.Contains(string(m.Data), `"error"`) {
				t.Errorf("%s with %s: got %s, %v, want it refused", user, name, m.Data, err)
			}
			if after := lasts(t, js, open); !slices.Equal(before, after) {
				t.Errorf("%s with %s: the streams went from %v to %v", user, name, before, after)
			}
		}
	}
}

// Clients with the rights of an earlier template, which may not hear of new owners, do what they did, and nothing is said about it.
func TestClientsThatMayNotHearOfNewOwners(t *testing.T) {
	url := startDeaf(t, permissions.Client)
	work(t, url)
	var log strings.Builder
	logger := logrus.New()
	logger.SetOutput(&log)
	c, err := drover.Connect(t.Context(), &drover.Options{URL: url, User: "client", Password: "client-secret", InboxPrefix: "_INBOX.client", Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	part, err := c.Start(ctx, "part", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := part.Result(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if log.Len() != 0 {
		t.Errorf("the log has %s", log.String())
	}
}

// Workers with the rights of an earlier template do what they did.
func TestWorkersThatMayNotHearOfNewOwners(t *testing.T) {
	url := startDeaf(t, permissions.Activity)
	work(t, url)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	order, err := as(t, url, "client").Start(ctx, "order", "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := order.Signal(ctx, "approve", 1); err != nil {
		t.Fatal(err)
	}
	var paid string
	if err := order.Result(ctx, &paid); err != nil || paid != "xx" {
		t.Fatalf("got %q and %v, want the work of both workers", paid, err)
	}
}

// startDeaf is startRoles where those of a role may not hear of new owners.
func startDeaf(t *testing.T, role permissions.Role) string {
	t.Helper()
	owned := subject.Namespace("default").AllOwned()
	return startUsers(t, "", func(t *testing.T, o permissions.Options) string {
		conf := template(t, o)
		if o.Role != role {
			return conf
		}
		before, after, had := strings.Cut(conf, fmt.Sprintf("    %q\n", owned))
		if !had {
			t.Fatalf("the template has no %s:\n%s", owned, conf)
		}
		return before + after
	})
}
