package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/cmd/drover/serve"
	"github.com/droverhq/drover/schemas"
)

// contexts makes a folder of the nats command line with the given contexts and selects one, unless it is "".
func contexts(t *testing.T, selected string, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	if err := os.MkdirAll(filepath.Join(dir, "nats", "context"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, body := range files {
		if err := os.WriteFile(filepath.Join(dir, "nats", "context", name+".json"), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if selected == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, "nats", "context.txt"), []byte(selected+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDialOptions(t *testing.T) {
	t.Setenv("HOME", "/home/joe")
	contexts(t, "picked", map[string]string{
		"picked": `{"url":"nats://picked:1"}`,
		"full": `{"description":"x","url":"nats://full:1","user":"u","password":"p","creds":"ignored","ca":"~/ca.pem","cert":"~/c.pem","key":"k.pem",
			"inbox_prefix":"_MINE","jetstream_domain":"hub"}`,
		"creds":  `{"creds":"~/my.creds","nkey":"ignored"}`,
		"nkey":   `{"url":"nats://nkey:1","nkey":"seed.nk","jetstream_api_prefix":"$JS.x.API"}`,
		"token":  `{"url":"nats://token:1","token":"t"}`,
		"future": `{"url":"nats://future:1","something_new":{"a":1}}`,
	})
	full := natsconn.Options{
		URL: "nats://full:1", User: "u", Password: "p", CAFile: "/home/joe/ca.pem", CertFile: "/home/joe/c.pem", KeyFile: "k.pem",
		InboxPrefix: "_MINE", APIPrefix: "$JS.hub.API",
	}
	change := func(o natsconn.Options, f func(*natsconn.Options)) natsconn.Options { f(&o); return o }
	for _, tt := range []struct {
		name, flags string
		env         map[string]string
		want        natsconn.Options
	}{
		{"the selected one", "", nil, natsconn.Options{URL: "nats://picked:1"}},
		{"not beside --nats", "--nats nats://flag:1", nil, natsconn.Options{URL: "nats://flag:1"}},
		{"not beside NATS_URL", "", map[string]string{"NATS_URL": "nats://env:1"}, natsconn.Options{}},
		{"none wanted", "--context=", nil, natsconn.Options{}},
		{"all of one", "--context full", nil, full},
		{"by the environment", "", map[string]string{cli.ContextEnv: "full"}, full},
		{"the flag wins", "--context token", map[string]string{cli.ContextEnv: "full"}, natsconn.Options{URL: "nats://token:1", Token: "t"}},
		{"over NATS_URL", "--context full", map[string]string{"NATS_URL": "nats://env:1"}, full},
		{"without an address", "--context creds", map[string]string{"NATS_URL": "nats://env:1"}, natsconn.Options{URL: "nats://127.0.0.1:4222", CredsFile: "/home/joe/my.creds"}},
		{"nkey", "--context nkey", nil, natsconn.Options{URL: "nats://nkey:1", NKeyFile: "seed.nk", APIPrefix: "$JS.x.API"}},
		{"unknown settings", "--context future", nil, natsconn.Options{URL: "nats://future:1"}},
		{"--nats wins over its address", "--context full --nats nats://flag:1", nil, change(full, func(o *natsconn.Options) { o.URL = "nats://flag:1" })},
		{"who connects is one thing", "--context full --nkey n", nil, change(full, func(o *natsconn.Options) { o.User, o.Password, o.NKeyFile = "", "", "n" })},
		{"so is the certificate", "--context full --tlscert c --tlskey k --tlsca ca", nil, change(full, func(o *natsconn.Options) { o.CertFile, o.KeyFile, o.CAFile = "c", "k", "ca" })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for k, v := range tt.env {
				t.Setenv(k, v)
			}
			a := cli.NewApp(nil, nil, nil, commandGroups)
			if err := a.Root().ParseFlags(strings.Fields(tt.flags)); err != nil {
				t.Fatal(err)
			}
			got, err := a.DialOptions()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

// Bad input: contexts. Exit code 2, and the way out.
func TestBrokenContexts(t *testing.T) {
	contexts(t, "gone", map[string]string{
		"b": `{"url":"nats://b:1"}`, "a": `{}`, "broken": `{"url":`, "socks": `{"socks_proxy":"x"}`, "nsc": `{"nsc":"nsc://o/a/u"}`,
		"jwt": `{"user_jwt":"x"}`, "first": `{"tls_first":true}`, "win": `{"windows_cert_store":"user"}`, "op": `{"creds":"op://x/y"}`,
	})
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"why", "x", "--context", "c"}, []string{`context "c" is not known`, "use one of a, b, broken,"}},
		{[]string{"why", "x", "--context", "../b"}, []string{"no name of a context"}},
		{[]string{"why", "x", "--context", "broken"}, []string{"broken.json", "nats context edit broken"}},
		{[]string{"why", "x", "--context", "socks"}, []string{"socks_proxy", "--nats"}},
		{[]string{"why", "x", "--context", "nsc"}, []string{"has nsc"}},
		{[]string{"why", "x", "--context", "jwt"}, []string{"user_jwt"}},
		{[]string{"why", "x", "--context", "first"}, []string{"tls_first"}},
		{[]string{"why", "x", "--context", "win"}, []string{"windows_cert_store"}},
		{[]string{"why", "x", "--context", "op"}, []string{"1Password"}},
		{[]string{"list"}, []string{`context "gone" is not known`, "nats context select", "--nats"}},
	} {
		command("", tt.args...).want(t, cli.ExitUsage, "", append(tt.want, "drover: ")...)
	}
	t.Setenv(cli.ContextEnv, "c")
	r := command("", "list", "--json")
	r.want(t, cli.ExitUsage, "", "{")
	if e := wantErrorDocument(t, r, schemas.CodeInvalid, ""); !strings.Contains(e.Message, `"c" is not known`) {
		t.Fatalf("got %+v", e)
	}
	contexts(t, "", nil)
	command("", "list").want(t, cli.ExitUsage, "", "there are none", "nats context add")
}

func TestContextIsUsed(t *testing.T) {
	s := newService(t)
	on(s, "why", func(schemas.ExecutionRequest) any { return schemas.WhyResponse{Run: "r1", Because: "of nothing"} })
	contexts(t, "there", map[string]string{"there": `{"url":"` + s.url + `"}`, "nowhere": `{"url":"nats://127.0.0.1:1"}`})
	ask := func(args ...string) result {
		s.settle()
		defer s.settle()
		return command("", append([]string{"why", "a"}, args...)...)
	}
	ask().want(t, cli.ExitDone, "of nothing\n")
	ask("--context", "there").want(t, cli.ExitDone, "of nothing\n")
	ask("--context", "nowhere").want(t, cli.ExitNoConnection, "", "127.0.0.1:1")
	ask("--context", "nowhere", "--nats", s.url).want(t, cli.ExitDone, "of nothing\n")
	t.Setenv("NATS_URL", "nats://127.0.0.1:2")
	ask().want(t, cli.ExitNoConnection, "", "127.0.0.1:2")
	ask("--context", "there").want(t, cli.ExitDone, "of nothing\n")
}

// A server of its own has no context, whatever the environment says; one beside a NATS elsewhere has.
func TestServerWithAContext(t *testing.T) {
	contexts(t, "picked", map[string]string{"picked": `{"url":"nats://127.0.0.1:1","user":"u","password":"p"}`})
	t.Setenv(cli.ContextEnv, "picked")
	for _, tt := range []struct {
		args string
		want *natsconn.Options
	}{
		{"", nil},
		{"--context picked", &natsconn.Options{URL: "nats://127.0.0.1:1", User: "u", Password: "p"}},
		{"--context=", nil},
		{"--context= --nats nats://127.0.0.1:2", &natsconn.Options{URL: "nats://127.0.0.1:2"}},
	} {
		a := cli.NewApp(nil, nil, nil, commandGroups)
		root := a.Root()
		cmd := cli.Find(root, "server")
		if err := cmd.ParseFlags(strings.Fields(tt.args)); err != nil {
			t.Fatal(err)
		}
		o, err := (&serve.ServerFlags{}).Options(a, cmd)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, o.External); diff != "" {
			t.Fatalf("%q: %s", tt.args, diff)
		}
	}
	command("", "server", "--context", "nowhere").want(t, cli.ExitUsage, "", `"nowhere" is not known`, "picked")
	command("", "server", "--context", "picked", "--store", "x").want(t, cli.ExitUsage, "", "--store is given", "--context")
	command("", "server", "--context", "picked").want(t, cli.ExitNoConnection, "", "127.0.0.1:1")
}
