package main

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/ops/doctor"
	"github.com/droverhq/drover/ops/permissions"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/server"
)

// What the templates of people allow is enough for the commands that they are for, also where a payload is large.
func TestRolesOfPeople(t *testing.T) {
	flowFiles(t, map[string]string{"f.yaml": "name: f\nsteps:\n- return ${workflow.input}\n", "big.json": `{"text":"` + strings.Repeat("x", schemas.PayloadThreshold+1) + `"}`})
	_, url := embeddedtest.Start(t, true, templates(t, permissions.Operator, permissions.Viewer, permissions.Auditor)...)
	serving(t, server.Options{External: &natsconn.Options{URL: url, User: embeddedtest.Root, Password: embeddedtest.Password}, Partitions: 1})
	as := func(user permissions.Role, args ...string) result {
		return command("", append(args, "--nats", url, "--user", string(user), "--password", embeddedtest.Password)...)
	}
	as(permissions.Operator, "flow", "deploy", "f.yaml").done(t)
	as(permissions.Operator, "start", "f", "--id", "big", "--wait", "--timeout", "1m", "--input", "@big.json").wantHolds(t, "xxx")
	looking := []string{
		"list", "count", "tasklist list", "lock list", "dead", "dead --count", "type list", "describe big", "why big", "history big", "result big", "retention explain big",
		"flow list", "flow show f", "flow graph f", "node list", "claims", "doctor",
	}
	for role, commands := range map[permissions.Role][]string{
		permissions.Operator: append(looking[:len(looking):len(looking)], "namespace list", "namespace describe default"),
		permissions.Viewer:   looking,
		permissions.Auditor:  append(looking[:len(looking):len(looking)], "verify", "verify --idle", "audit", "audit --repair=false"),
	} {
		for _, args := range commands {
			if r := as(role, strings.Fields(args)...); r.code != cli.ExitDone {
				t.Errorf("%s: %s: got %d %s", role, args, r.code, r.stderr)
			}
		}
	}
	at := []string{"--nats", url, "--password", embeddedtest.Password, "--user"}
	viewer, auditor := diagnose(t, cli.ExitDone, append(at, string(permissions.Viewer))...), diagnose(t, cli.ExitDone, append(at, string(permissions.Auditor))...)
	finding(t, viewer, doctor.Warn, "owners", "how many partitions there are cannot be seen")
	finding(t, auditor, doctor.OK, "owners", "each of 1 partitions")
	finding(t, auditor, doctor.OK, "permissions", "what a viewer does")
}
