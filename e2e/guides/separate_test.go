package guides_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/conf"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/ops/permissions"
)

// Each role in the configuration file, parsed as NATS does.
func TestWhatIsPrintedIsWhatNATSReads(t *testing.T) {
	for _, r := range permissions.Roles() {
		for _, ns := range []string{"default", permissions.AllNamespaces} {
			if ns == permissions.AllNamespaces && !permissions.OfServers(r) {
				continue
			}
			o := permissions.Options{Role: r, Namespace: ns}
			if r == permissions.Activity {
				o.Lists = []string{"PCI"}
			}
			tpl, err := permissions.For(o)
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := conf.Parse("users: [\n" + tpl.Conf("secret") + "]\n")
			if err != nil {
				t.Fatalf("%s: %v", r, err)
			}
			user := parsed["users"].([]any)[0].(map[string]any)
			if user["user"] != string(r) || user["password"] != "secret" {
				t.Errorf("%s: got %v", r, user)
			}
			p := user["permissions"].(map[string]any)
			want := tpl.Permissions()
			if got := texts(p["publish"]); !slices.Equal(got, want.Publish.Allow) {
				t.Errorf("%s: got %v, want %v", r, got, want.Publish.Allow)
			}
			if got := texts(p["subscribe"]); !slices.Equal(got, want.Subscribe.Allow) {
				t.Errorf("%s: got %v, want %v", r, got, want.Subscribe.Allow)
			}
			if (p["allow_responses"] != nil) != (want.AllowResponses != nil) {
				t.Errorf("%s: got %v, want %v", r, p["allow_responses"], want.AllowResponses)
			}
			if !strings.HasPrefix(tpl.NSC(), "nsc add user --name "+string(r)) {
				t.Errorf("got %q", tpl.NSC())
			}
		}
	}
}

func texts(v any) []string {
	var all []string
	for _, s := range v.([]any) {
		all = append(all, s.(string))
	}
	return all
}

// startSeparate is startRoles with an account of its own for each role that can have one.
func startSeparate(t *testing.T) (url string) {
	t.Helper()
	var users, exports, accounts strings.Builder
	for _, o := range roles() {
		tpl, err := permissions.For(o)
		if err != nil {
			t.Fatal(err)
		}
		text, err := tpl.Account(tpl.User+"-secret", "DROVER")
		if err != nil {
			users.WriteString(template(t, o))
			continue
		}
		_, rest, _ := strings.Cut(text, "exports: [\n")
		own, account, _ := strings.Cut(rest, "]\n# An account")
		exports.WriteString(own)
		accounts.WriteString("#" + account)
	}
	return startConf(t, fmt.Sprintf("jetstream {}\naccounts {\nDROVER { jetstream: enabled, users: [\n%s{ user: root, password: root-secret }\n]\nexports: [\n%s]\n}\n%s}\n",
		users.String(), exports.String(), accounts.String()))
}

// In accounts of their own the roles do the same work.
func TestSeparateAccountsSuffice(t *testing.T) { templatesSuffice(t, startSeparate(t)) }

// NATS does not judge the reply subject that a user names: what answers publishes there by its own right. A user with an
// account of its own gains nothing by that.
func TestReplySubjectsStayInTheAccount(t *testing.T) {
	url := startSeparate(t)
	serveAs(t, url, "broker", "--roles", "broker", "--only-namespace", "--node", "b")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	order, err := as(t, url, "client").Start(ctx, "order", nil, &drover.StartOptions{ID: "order-1"})
	if err != nil {
		t.Fatal(err)
	}
	root, _ := plain(t, url, "root")
	js, err := jetstream.New(root)
	if err != nil {
		t.Fatal(err)
	}
	ns, p := subject.Namespace("default"), subject.Partition("order-1", 4)
	streams := []string{ns.StreamIn(p), ns.StreamHistory(p), ns.StreamSignals(), "KV_" + ns.BucketTypes()}
	// The signal itself is for nobody, and becomes a dead letter. One for order-1 would be a record of its own.
	asked := map[string]string{"signaler": ns.Signal("nobody", "approve"), "viewer": ns.API("describe"), "client": ns.API("result"), "operator": ns.API("list")}
	for user, ask := range asked {
		nc, _ := plain(t, url, user)
		before := lasts(t, js, streams)
		for _, reply := range []string{
			ns.In(p, "order-1", "terminate"), ns.In(p, "order-1", "pause"), ns.In(p, "order-1", "cancel"), ns.History(p, "order-1", order.RunID),
			ns.Fence(p), ns.Signal("order-1", "reject"), "$KV." + ns.BucketTypes() + ".x", ns.Owner(p),
		} {
			if err := nc.PublishMsg(&nats.Msg{Subject: ask, Reply: reply, Data: []byte(`{"workflowId":"nobody"}`)}); err != nil {
				t.Fatal(err)
			}
		}
		// An answer to the last request says that the others were answered.
		if m, err := nc.Request(ask, []byte(`{"workflowId":"nobody"}`), patience); err != nil {
			t.Fatalf("%s: got %v, %v", user, m, err)
		}
		if user == "signaler" {
			before[2] += 9 // what it sent by right
		}
		if after := lasts(t, js, streams); !slices.Equal(before, after) {
			t.Errorf("%s: the last sequences of %v went from %v to %v", user, streams, before, after)
		}
	}
}

func lasts(t *testing.T, js jetstream.JetStream, streams []string) []uint64 {
	t.Helper()
	all := make([]uint64, len(streams))
	for i, name := range streams {
		s, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = s.CachedInfo().State.LastSeq
	}
	return all
}

// That a partition has a new owner is heard in the other accounts, so that clients ask again.
func TestNewOwnersAreHeardInOtherAccounts(t *testing.T) {
	url := startSeparate(t)
	ns := subject.Namespace("default")
	heard := map[string]*nats.Subscription{}
	for _, user := range []string{"client", "operator", "viewer"} {
		nc, _ := plain(t, url, user)
		sub, err := nc.SubscribeSync(ns.AllOwned())
		if err != nil {
			t.Fatal(err)
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		heard[user] = sub
	}
	broker, _ := plain(t, url, "broker")
	if err := broker.Publish(ns.Owned(3), nil); err != nil {
		t.Fatal(err)
	}
	for user, sub := range heard {
		if m, err := sub.NextMsg(patience); err != nil || m.Subject != ns.Owned(3) {
			t.Errorf("%s: got %v, %v, want the word of a new owner", user, m, err)
		}
	}
}
