package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/ops/doctor"
)

// Refusals of the JetStream API are told at once in a domain, too, where its subjects have another prefix.
func TestPermissionDeniedInADomain(t *testing.T) {
	_, url := embeddedtest.Start(t, true, embeddedtest.User{Name: "nobody", Subscribe: []string{"_INBOX.>"}})
	contexts(t, "", map[string]string{"hub": fmt.Sprintf(`{"url":%q,"user":"nobody","password":%q,"jetstream_domain":"hub"}`, url, embeddedtest.Password)})
	began := time.Now()
	command("", "audit", "--context", "hub").want(t, cli.ExitFailed, "", "not permitted", `"$JS.hub.API.STREAM.INFO.drover-default-signals"`, "allow the NATS user to publish")
	got := diagnose(t, cli.ExitDone, "--context", "hub")
	for _, check := range []string{"server", "account", "clock", "nodes", "streams", "owners"} {
		finding(t, got, doctor.Warn, check, "cannot be seen with this user", "$JS.hub.API.")
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v, want it at once", took)
	}
}
