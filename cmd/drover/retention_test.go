package main

import (
	"strings"
	"testing"

	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/server"
)

func TestRetentionExplain(t *testing.T) {
	s := newService(t)
	var asked schemas.ExecutionRequest
	on(s, "retention", func(q schemas.ExecutionRequest) any {
		asked = q
		switch q.WorkflowID {
		case "open":
			return schemas.RetentionResponse{V: schemas.Version, WorkflowID: "open", Run: "r1", Status: schemas.StatusOpen, Because: "never: it is open, and open runs are always kept"}
		case "gone":
			return schemas.RetentionResponse{Error: schemas.Errorf(schemas.CodeNotFound, "workflow %q has no such history", q.WorkflowID)}
		}
		return schemas.RetentionResponse{
			WorkflowID: "a", Run: "r2", Status: schemas.StatusCompleted, ClosedAt: 1, Group: `runs of type "order"`, Expression: "7d soft 0",
			Source: "the default of the namespace", Rank: 2, Count: 9, Until: 2, Because: "Kept: for a week.",
		}
	})
	r := s.drover("", "retention", "explain", "a", "--run", "r2")
	for _, want := range []string{"Kept: for a week.\n", "run        r2, completed", `group      runs of type "order": number 2 of 9`, "judged by  7d soft 0, the default of the namespace", "closed     1970", "until      1970"} {
		if r.code != cli.ExitDone || !strings.Contains(r.stdout, want) {
			t.Errorf("want %q in (exit %d)\n%s%s", want, r.code, r.stdout, r.stderr)
		}
	}
	if asked.WorkflowID != "a" || asked.Run != "r2" {
		t.Errorf("asked %+v", asked)
	}
	s.drover("", "retention", "explain", "open").want(t, cli.ExitDone, "never: it is open, and open runs are always kept\nrun  r1, open\n")
	s.drover("", "retention", "explain", "open", "--json").want(t, cli.ExitDone,
		`{"workflowId":"open","run":"r1","status":"open","because":"never: it is open, and open runs are always kept"}`+"\n")
	s.drover("", "retention", "explain", "gone").want(t, cli.ExitFailed, "", `workflow "gone" has no such history`)
	s.drover("", "retention").want(t, cli.ExitUsage, "", "explain is missing")
	s.drover("", "retention", "sweep").want(t, cli.ExitUsage, "", `there is no command "retention sweep"`)
	s.drover("", "retention", "explain").want(t, cli.ExitUsage, "", "ID is missing")
}

// A0-16: both defaults are of the namespace, changed by a command, and told at each start of a server.
func TestRetentionOfTheNamespace(t *testing.T) {
	nats := embeddedtest.Serve(t, embedded.Options{Port: -1})
	on := func(args ...string) result { return command("", append(args, "--nats", nats.ClientURL())...) }
	starts := func(flows, others string, then func()) {
		t.Helper()
		log, kept := logtest.NewNullLogger()
		s := serving(t, server.Options{External: &natsconn.Options{URL: nats.ClientURL()}, Partitions: 1, Logger: log})
		defer s.end(t)
		defer then()
		for _, e := range kept.AllEntries() {
			if strings.HasPrefix(e.Message, "retention: ") {
				if e.Data["flows"] != flows || e.Data["others"] != others {
					t.Errorf("got %v, want %s for flows and %s for others", e.Data, flows, others)
				}
				return
			}
		}
		t.Errorf("the server has not told how closed runs are kept")
	}
	starts("3 soft 3", "7d", func() {
		for flag, bad := range map[string]string{"--retention": "fortnight", "--retention-flows": "3 hash a"} {
			if r := on("namespace", "create", "default", flag, bad); r.code == cli.ExitDone || !strings.Contains(r.stderr, bad) {
				t.Errorf("%s %q: got %+v, want a refusal", flag, bad, r)
			}
		}
	})
	starts("3 soft 3", "7d", func() {
		if r := on("namespace", "create", "default", "--retention", "max(5, 30d)", "--retention-flows", "2 soft 10"); r.code != cli.ExitDone {
			t.Errorf("got %+v", r)
		}
	})
	starts("2 soft 10", "max(5, 30d)", func() {})
}
