package namespaces_test

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/namespaces"
	"github.com/droverhq/drover/schemas"
)

// A creation that NATS refuses halfway leaves what was made by then. It is not called ready, says what completes it, and is completed by it.
func TestServiceTellsHalfANamespace(t *testing.T) {
	o := openOn(t, 1, embedded.Options{MaxStore: 300 << 20}, namespaces.ServeOptions{})
	status := func(name string) (listed, described schemas.NamespaceStatus) {
		for _, i := range ask[schemas.NamespaceListResponse](t, o, "list", `{}`).Namespaces {
			if i.Name == name {
				listed = i.Status
			}
		}
		return listed, o.ok(t, "describe", `{"name":"`+name+`"}`).Status
	}
	const shop = `{"name":"shop","partitions":1,"maxBytes":16777216}` // each has some fourteen streams
	o.ok(t, "create", strings.ReplaceAll(shop, "shop", "whole"))
	a := ask[schemas.NamespaceResponse](t, o, "create", shop)
	if a.Error == nil || a.Error.Code != schemas.CodeLimit || !strings.Contains(a.Error.Message, "--max-bytes") || !strings.Contains(a.Error.Hint, "the same command completes it") {
		t.Fatalf("got %+v, want a refusal that says what is left and what completes it", a.Error)
	}
	if l, d := status("shop"); l != schemas.NamespaceIncomplete || d != schemas.NamespaceIncomplete {
		t.Errorf("of the half one: listed as %q, described as %q, want incomplete", l, d)
	}
	if l, d := status("whole"); l != schemas.NamespaceReady || d != schemas.NamespaceReady {
		t.Errorf("of the whole one: listed as %q, described as %q, want ready", l, d)
	}
	o.ok(t, "delete", `{"name":"whole"}`)
	o.ok(t, "create", shop)
	if l, d := status("shop"); l != schemas.NamespaceReady || d != schemas.NamespaceReady {
		t.Errorf("of the completed one: listed as %q, described as %q, want ready", l, d)
	}
	// What was refused at its first stream has left nothing.
	a = ask[schemas.NamespaceResponse](t, o, "create", `{"name":"none","maxBytes":1099511627776}`)
	if a.Error == nil || a.Error.Hint != "" {
		t.Errorf("got %+v, want a refusal that speaks of nothing left", a.Error)
	}
}
