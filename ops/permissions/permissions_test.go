package permissions_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/ops/permissions"
)

// options of each role that are good.
func options(r permissions.Role) permissions.Options {
	o := permissions.Options{Role: r}
	if r == permissions.Activity {
		o.Lists = []string{"PCI"}
	}
	return o
}

func TestActivityWorker(t *testing.T) {
	got, err := permissions.For(permissions.Options{Role: permissions.Activity, Lists: []string{"PCI"}, User: "pci", Identity: "pci 1", Domain: "hub"})
	if err != nil {
		t.Fatal(err)
	}
	want := permissions.Permissions{
		Publish: permissions.Subjects{Allow: []string{
			"$JS.hub.API.CONSUMER.MSG.NEXT.drover-default-tasks-PCI.workers-high",
			"$JS.hub.API.CONSUMER.MSG.NEXT.drover-default-tasks-PCI.workers",
			"$JS.hub.API.CONSUMER.MSG.NEXT.drover-default-tasks-PCI.workers-low",
			"$JS.ACK.drover-default-tasks-PCI.>",
			"$JS.ACK.hub.*.drover-default-tasks-PCI.>",
			"drover.default.in.*.*.act.PCI",
			"drover.default.outcome.*.*.PCI",
			"drover.default.beat.*.*.PCI",
			"drover.default.dead.undecodable-task.tasks.PCI.>",
			"drover.default.api.tasklist",
			"drover.default.api.upload",
			"drover.default.api.upload.>",
			"drover.default.api.download",
		}},
		Subscribe:      permissions.Subjects{Allow: []string{"drover.default.offer.PCI", "drover.default.control.pci%201", "drover.default.owned.*", "_INBOX.pci.>"}},
		AllowResponses: &permissions.Responses{Max: 1, Expires: "1m"},
	}
	if diff := cmp.Diff(want, got.Permissions()); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
}

// From a server outside the domain, such as a leaf node, buckets are written after the prefix of the domain.
func TestBucketsOfADomain(t *testing.T) {
	for _, r := range permissions.Roles() {
		o := options(r)
		o.Domain = "hub"
		tpl, err := permissions.For(o)
		if err != nil {
			t.Fatal(err)
		}
		allowed := tpl.Permissions().Publish.Allow
		for _, s := range allowed {
			if later := "$JS.hub.API." + s; strings.HasPrefix(s, "$KV.") && !slices.Contains(allowed, later) && !slices.Contains(allowed, "$JS.hub.API.>") {
				t.Errorf("%s: got no right to %s, want it beside %s", r, later, s)
			}
		}
	}
}

func TestSignaler(t *testing.T) {
	for _, tt := range []struct{ workflow, signal, want string }{
		{"", "", "drover.shop.signal.*.*"},
		{"", "approve", "drover.shop.signal.*.approve"},
		{"a.b", "", "drover.shop.signal.a%2Eb.*"},
		{"a>", "*", "drover.shop.signal.a%3E.%2A"},
	} {
		tpl, err := permissions.For(permissions.Options{Role: permissions.Signaler, Namespace: "shop", Workflow: tt.workflow, Signal: tt.signal})
		if err != nil {
			t.Fatal(err)
		}
		if got := tpl.Permissions().Publish.Allow; !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%q %q: got %v, want %s", tt.workflow, tt.signal, got, tt.want)
		}
	}
}

// Nobody but servers and auditors can make a consumer, change a stream or write a bucket; and only servers write histories.
func TestWhatNobodyElseMay(t *testing.T) {
	forbidden := []string{
		"$JS.API.CONSUMER.CREATE.s.c", "$JS.API.CONSUMER.CREATE.s.c.f", "$JS.API.CONSUMER.DURABLE.CREATE.s.c", "$JS.API.CONSUMER.DELETE.s.c",
		"$JS.API.STREAM.CREATE.s", "$JS.API.STREAM.UPDATE.s", "$JS.API.STREAM.DELETE.s", "$JS.API.STREAM.PURGE.s", "$JS.API.STREAM.MSG.DELETE.s",
		"$KV.drover-default-claims.k", "$KV.drover-default-locks.=.L", "$KV.drover-default-state.=.k", "drover.default.history.0.w.r", "drover.default.in.0.w.start", "drover.default.task.l.0",
	}
	for _, r := range permissions.Roles() {
		tpl, err := permissions.For(options(r))
		if err != nil {
			t.Fatal(err)
		}
		p := tpl.Permissions()
		for _, s := range forbidden {
			may := slices.ContainsFunc(p.Publish.Allow, func(a string) bool { return permissions.Covers(a, s) })
			trusted := permissions.OfServers(r) || r == permissions.Auditor
			if may && !trusted {
				t.Errorf("%s may publish %s", r, s)
			}
			if writes := strings.HasPrefix(s, "drover.default.history") && may; writes && r != permissions.Server && r != permissions.Broker {
				t.Errorf("%s may write histories", r)
			}
		}
		for _, s := range p.Subscribe.Allow {
			if permissions.Covers(s, "_INBOX.somebody.x") {
				t.Errorf("%s hears the answers of others: %s", r, s)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	for want, o := range map[string]permissions.Options{
		`no role "king"`:                  {Role: "king"},
		"name at least one":               {Role: permissions.Activity},
		"belongs to one namespace":        {Role: permissions.Viewer, Namespace: permissions.AllNamespaces},
		"Lists belongs to the role":       {Role: permissions.Viewer, Lists: []string{"a"}},
		"Types belongs to the role":       {Role: permissions.Activity, Lists: []string{"a"}, Types: []string{"t"}},
		"Signal belongs to the role":      {Role: permissions.Client, Signal: "s"},
		`list "a.b"`:                      {Role: permissions.Activity, Lists: []string{"a.b"}},
		"User":                            {Role: permissions.Viewer, User: "a b"},
		"Inbox":                           {Role: permissions.Viewer, Inbox: "_INBOX.>"},
		"no server may answer":            {Role: permissions.Viewer, Inbox: "mine"},
		"Domain":                          {Role: permissions.Viewer, Domain: "a.b"},
		`Domain "a,>"`:                    {Role: permissions.Viewer, Domain: "a,>"},
		`Domain "a,b"`:                    {Role: permissions.Viewer, Domain: "a,b"}, // a list of nsc would have two subjects
		`Inbox "_INBOX.a'b"`:              {Role: permissions.Viewer, Inbox: "_INBOX.a'b"},
		`Inbox "_INBOX.a,drover"`:         {Role: permissions.Viewer, User: "a,drover"},
		"Partitions is 257: use 1 to 256": {Role: permissions.Timer, Partitions: 257},
		"namespace":                       {Role: permissions.Viewer, Namespace: "a b"},
		"control character":               {Role: permissions.Signaler, Workflow: "a\nb"},
		"type":                            {Role: permissions.Decider, Types: []string{""}},
	} {
		if _, err := permissions.For(o); !errors.Is(err, permissions.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", o, err, want)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, tt := range []struct {
		pattern, s string
		want       bool
	}{
		{"a.b", "a.b", true},
		{"a.*", "a.b", true},
		{"a.>", "a.b.c", true},
		{"a.>", "a", false},
		{"a.*", "a.>", false},
		{">", "a.>", true},
		{"a.*", "a.*", true},
		{"a.b", "a.*", false},
		{"a.*.c", "a.b", false},
		{"a", "a.b", false},
		{"*.>", "a.>", true},
		{"a.*.>", "a.>", false},
	} {
		if got := permissions.Covers(tt.pattern, tt.s); got != tt.want {
			t.Errorf("Covers(%q, %q): got %v, want %v", tt.pattern, tt.s, got, tt.want)
		}
	}
}

// A0-18: who may start may replay; to force a replay needs the right to another subject, which operators have.
func TestForcedReplaysNeedMore(t *testing.T) {
	for _, tc := range []struct {
		role         permissions.Role
		plain, force bool
	}{
		{permissions.Client, true, false},
		{permissions.Operator, true, true},
		{permissions.Viewer, false, false},
		{permissions.Auditor, false, false},
		{permissions.Decider, false, false},
		{permissions.Activity, false, false},
		{permissions.Signaler, false, false},
	} {
		tpl, err := permissions.For(options(tc.role))
		if err != nil {
			t.Fatal(err)
		}
		allow := tpl.Permissions().Publish.Allow
		may := func(subject string) bool {
			return slices.ContainsFunc(allow, func(a string) bool { return permissions.Covers(a, subject) })
		}
		if got := may("drover.default.api.replay"); got != tc.plain {
			t.Errorf("%s may replay: %v, want %v", tc.role, got, tc.plain)
		}
		if got := may("drover.default.api.replayForce"); got != tc.force {
			t.Errorf("%s may force a replay: %v, want %v", tc.role, got, tc.force)
		}
	}
}
