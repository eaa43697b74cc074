package topology_test

import (
	"errors"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/broker/topology"
)

// The server does not answer a user without permission. Nobody waits for that.
func TestRefused(t *testing.T) {
	srv, _ := embeddedtest.Start(t, false, embeddedtest.User{Name: "narrow", Publish: []string{"$JS.API.INFO"}, Subscribe: []string{"_INBOX.>"}})
	conn, err := post.Dial(t.Context(), post.Options{InProcess: srv, User: "narrow", Password: embeddedtest.Password})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for name, call := range map[string]func() error{
		"Ensure": func() error { _, err := topology.Ensure(t.Context(), conn, topology.Options{}); return err },
		"Lookup": func() error { _, err := topology.Lookup(t.Context(), conn, "default"); return err },
	} {
		began := time.Now()
		err := call()
		e, ok := errors.AsType[*post.RefusedError](err)
		if !ok || e.Subject != "$JS.API.STREAM.INFO.drover-default-signals" {
			t.Fatalf("%s: got %v, want the refused request", name, err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Fatalf("%s: took %v, want it at once", name, took)
		}
	}
}
