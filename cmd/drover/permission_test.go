package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
)

// Every command of a user who may do nothing says so at once, with the subject and the way out.
func TestPermissionDenied(t *testing.T) {
	ns := subject.Namespace("default")
	_, url := embeddedtest.Start(t, true,
		embeddedtest.User{Name: "nobody", Subscribe: []string{"_INBOX.>"}},
		embeddedtest.User{Name: "deaf", Publish: []string{">"}},
		embeddedtest.User{Name: "own-inbox", Publish: []string{">"}, Subscribe: []string{"_MINE.>"}},
	)
	verbs := map[string]string{
		"start t": ns.API("start"), "start t --id a --signal s": ns.API("start"), "signal a b": ns.API("signal"),
		"cancel a --run r": ns.API("cancel"), "terminate a --run r": ns.API("terminate"), "terminate a": ns.API("describe"),
		"result a": ns.API("result"), "describe a": ns.API("describe"), "history a": ns.API("history"), "history a --follow": ns.API("history"),
		"why a": ns.API("why"), "list": ns.API("query"), "count": ns.API("groups"), "list --scan": ns.API("list"), "count --scan": ns.API("count"), "tasklist list": ns.API("lists"), "dead": ns.API("dead"),
		"pause a --run r": ns.API("pause"), "resume a --run r": ns.API("resume"), "type list": ns.API("typeList"),
		"server": "$JS.API.INFO", "namespace list": schemas.NamespaceSubject("list"), "verify": "$JS.API.STREAM.INFO.drover-default-history-0",
	}
	for args, refused := range verbs {
		began := time.Now()
		r := command("", append(strings.Fields(args), "--nats", url, "--user", "nobody", "--password", embeddedtest.Password)...)
		r.want(t, cli.ExitFailed, "", "not permitted", fmt.Sprintf("%q", refused), "allow the NATS user to publish")
		if took := time.Since(began); took > time.Second {
			t.Errorf("%s: took %v, want it at once", args, took)
		}
	}
	asNobody := []string{"--nats", url, "--user", "nobody", "--password", embeddedtest.Password, "--json"}
	r := command("", append([]string{"describe", "a"}, asNobody...)...)
	if e := wantErrorDocument(t, r, schemas.CodePermission, "a"); !strings.Contains(e.Hint, ns.API("describe")) {
		t.Fatalf("got %+v", e)
	}
	began := time.Now()
	command("", "start", "t", "--nats", url, "--user", "deaf", "--password", embeddedtest.Password).
		want(t, cli.ExitFailed, "", `subscribe to "_INBOX.`, "allow the NATS user to subscribe")
	if took := time.Since(began); took > time.Second {
		t.Errorf("took %v, want it at once", took)
	}
	contexts(t, "", map[string]string{"mine": fmt.Sprintf(`{"url":%q,"user":"own-inbox","password":%q,"inbox_prefix":"_MINE"}`, url, embeddedtest.Password)})
	command("", "why", "a", "--timeout", "300ms", "--context", "mine").want(t, cli.ExitNoConnection, "", "nobody listens")
	command("", "list", "--nats", url, "--user", "nobody", "--password", "wrong").want(t, cli.ExitNoConnection, "", "refuses these credentials")
}

// The client of a program says the same.
func TestPermissionDeniedToAProgram(t *testing.T) {
	_, url := embeddedtest.Start(t, true, embeddedtest.User{Name: "nobody", Subscribe: []string{"_INBOX.>"}})
	c, err := drover.Connect(t.Context(), &drover.Options{URL: url, User: "nobody", Password: embeddedtest.Password})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.Run("a", "").Result(ctx, nil); err == nil || !strings.Contains(err.Error(), `allow the NATS user to publish to "drover.default.api.result"`) {
		t.Fatalf("got %v", err)
	}
}
