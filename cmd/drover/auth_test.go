package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/ops/permissions"
)

func TestAuthTemplate(t *testing.T) {
	r := command("", "auth", "template", "activity", "--list", "PCI", "--list", "mail", "--user", "pci", "--password", "p", "--namespace", "shop")
	if r.code != cli.ExitDone || r.stderr != "" {
		t.Fatalf("got %d: %s", r.code, r.stderr)
	}
	for _, want := range []string{`{ user: pci, password: "p", permissions: {`, `"drover.shop.in.*.*.act.mail"`, `"$JS.ACK._.*.drover-shop-tasks-PCI.>"`, `"_INBOX.pci.>"`, "allow_responses"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("got %s\nwant it to hold %s", r.stdout, want)
		}
	}
	r = command("", "auth", "template", "decider", "--type", "order", "--inbox", "_INBOX.d", "--json")
	var p permissions.Permissions
	if err := json.Unmarshal([]byte(r.stdout), &p); err != nil || len(p.Subscribe.Allow) != 3 || p.Subscribe.Allow[2] != "_INBOX.d.>" || p.AllowResponses.Max != 1 {
		t.Fatalf("got %s, %v", r.stdout, err)
	}
	// A server serves every namespace, unless one is named.
	if r := command("", "auth", "template", "server"); !strings.Contains(r.stdout, `"drover.*.>"`) {
		t.Fatalf("got %s", r.stdout)
	}
	if r := command("", "auth", "template", "broker", "-n", "default"); !strings.Contains(r.stdout, `"drover.default.>"`) || strings.Contains(r.stdout, "drover.*") {
		t.Fatalf("got %s", r.stdout)
	}
	if r := command("", "auth", "template", "client", "--nsc"); !strings.HasPrefix(r.stdout, "nsc add user --name client") {
		t.Fatalf("got %s", r.stdout)
	}
	r = command("", "auth", "template", "signaler", "--signal", "approve", "--account", "DROVER")
	for _, want := range []string{
		`{ service: "drover.default.signal.*.approve", accounts: [SIGNALER] }`, "SIGNALER {\n  imports: [\n",
		`{ service: { account: DROVER, subject: "drover.default.signal.*.approve" } }`, "{ user: signaler",
	} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("got %s\nwant it to hold %s", r.stdout, want)
		}
	}
	for args, want := range map[string]string{
		"auth template decider --account DROVER": "cannot have an account of its own",
		"auth":                                   "a command is missing",
		"auth template":                          "ROLE is missing",
		"auth template king":                     `no role "king"`,
		"auth template activity":                 "name at least one",
		"auth template viewer --list a":          "belongs to the role activity",
		"auth template viewer --nsc --json":      "exclude each other",
		"auth template activity --list a/b":      `list "a/b"`,
		"auth template timer --partitions 99999": "Partitions is 99999",
		// An empty word, such as that of a variable that is not set, does not mean every one.
		"auth template decider --type=":                       "--type is empty",
		"auth template signaler --workflow=":                  "--workflow is empty",
		"auth template signaler --signal= --workflow a":       "--signal is empty",
		"auth template activity --list a --identity=":         "--identity is empty",
		"auth template signaler --account=":                   "--account is empty",
		"auth template client --domain=":                      "--domain is empty",
		"auth template client --partitions 8":                 "--partitions is given, which is for the role timer",
		"auth template client --password p --nsc":             "--password is given",
		"auth template client --password p --json":            "--password is given",
		"auth template client --user drover --account DROVER": "that of the servers",
		"auth template client --account a\"b":                 "account",
	} {
		command("", strings.Fields(args)...).want(t, cli.ExitUsage, "", want)
	}
}
