package namespaces_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/namespaces"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// office is a server with the service for namespaces, and somebody who asks it.
type office struct {
	*natsconn.Conn
	server *embedded.Server
}

// open starts n processes that serve.
func open(t *testing.T, n int, o namespaces.ServeOptions) *office {
	t.Helper()
	return openOn(t, n, embedded.Options{}, o)
}

// openOn is open on a server that is not like the others.
func openOn(t *testing.T, n int, at embedded.Options, o namespaces.ServeOptions) *office {
	t.Helper()
	at.DontListen = true
	s := embeddedtest.Serve(t, at)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(func() { cancel(); wg.Wait() })
	for range n {
		conn := embeddedtest.Connect(t, s)
		wg.Go(func() {
			if err := namespaces.Serve(ctx, conn, o); err != nil {
				t.Errorf("got %v, want nil", err)
			}
		})
	}
	of := &office{Conn: embeddedtest.Connect(t, s), server: s}
	of.ready(t)
	return of
}

// ready waits until somebody serves.
func (o *office) ready(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		if _, err := o.Request(t.Context(), schemas.NamespaceSubject("list"), nil, []byte("{}")); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody serves")
		}
	}
}

// ask sends a request in JSON and reads the answer into one of type A.
func ask[A any](t *testing.T, o *office, verb, body string) A {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	m, err := o.Request(ctx, schemas.NamespaceSubject(verb), nil, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	var a A
	if err := json.Unmarshal(m.Data, &a); err != nil {
		t.Fatalf("%s: %v", m.Data, err)
	}
	return a
}

func (o *office) ok(t *testing.T, verb, body string) *schemas.NamespaceInfo {
	t.Helper()
	a := ask[schemas.NamespaceResponse](t, o, verb, body)
	if a.Error != nil || a.V != schemas.Version {
		t.Fatalf("%s %s: got %+v", verb, body, a)
	}
	return a.Namespace
}

func TestServiceCreates(t *testing.T) {
	o := open(t, 2, namespaces.ServeOptions{Memory: true, Version: "1.2.3"})
	got := o.ok(t, "create", `{"name":"shop","partitions":2,"maxBytes":33554432,"compression":"s2","requireTypes":true,"description":"a shop"}`)
	want := &schemas.NamespaceInfo{
		Name: "shop", Status: schemas.NamespaceReady, Partitions: 2, Replicas: 1, MaxBytes: 32 << 20, Compression: "s2", RequireTypes: true, Description: "a shop", Storage: "memory",
		FlowRetention: topology.DefaultFlowRetention, Retention: topology.DefaultRetention,
	}
	times := cmpopts.IgnoreFields(schemas.NamespaceInfo{}, "CreatedAt")
	if d := cmp.Diff(want, got, times); d != "" || got.CreatedAt == 0 {
		t.Fatalf("created at %v (-want +got):\n%s", got.CreatedAt, d)
	}
	if got := o.ok(t, "create", `{"name":"shop"}`); cmp.Diff(want, got, times) != "" {
		t.Fatalf("got %+v of a repeat, want it as it was", got)
	}
	want.MaxBytes, want.RequireTypes = 0, false
	if got := o.ok(t, "create", `{"name":"shop","maxBytes":-1,"requireTypes":false}`); cmp.Diff(want, got, times) != "" {
		t.Fatalf("got %+v, want it without limits", got)
	}
	if got := o.ok(t, "describe", `{"name":"shop"}`); len(got.Usage) < 5 {
		t.Fatalf("got %+v, want its usage", got)
	}
	dead, err := o.JetStream().Stream(t.Context(), "drover-shop-dead")
	if err != nil {
		t.Fatal(err)
	}
	if v := dead.CachedInfo().Config.Metadata["drover.version"]; v != "1.2.3" {
		t.Fatalf("got version %q, want that of the server", v)
	}
}

// The answer to a request about namespaces goes to an inbox, and not where the asker would have the server write for him.
func TestServiceReflectsNothing(t *testing.T) {
	s := embeddedtest.Serve(t, embedded.Options{DontListen: true})
	serving, conn := embeddedtest.Connect(t, s), embeddedtest.Connect(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- namespaces.Serve(ctx, serving, namespaces.ServeOptions{Memory: true}) }()
	o := &office{Conn: conn, server: s}
	o.ready(t)
	const to = "drover.default.signal.w.go"
	reflected := make(chan natsconn.Msg, 10)
	if _, err := o.Subscribe(to, "", func(m natsconn.Msg) { reflected <- m }); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"list", "describe", "create", "delete"} {
		if err := o.PublishReply(schemas.NamespaceSubject(verb), to, nil, []byte(`{"name":"no such"}`)); err != nil {
			t.Fatal(err)
		}
	}
	o.ok(t, "create", `{"name":"shop"}`) // they are heard by then
	cancel()
	if err := <-ended; err != nil { // and answered
		t.Fatal(err)
	}
	for _, c := range []*natsconn.Conn{serving, o.Conn} {
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case m := <-reflected:
		t.Errorf("got %s on %s, want that nothing is answered there", m.Data, to)
	default:
	}
}

// A server that makes streams in files still keeps a namespace as it is.
func TestServiceKeepsTheStorage(t *testing.T) {
	o := open(t, 1, namespaces.ServeOptions{})
	ensure(t, o.Conn, topology.Options{Namespace: "old"})
	if got := o.ok(t, "create", `{"name":"old"}`); got.Storage != "memory" {
		t.Fatalf("got %+v, want it in memory", got)
	}
}

func TestServiceRefuses(t *testing.T) {
	o := open(t, 1, namespaces.ServeOptions{Memory: true})
	ensure(t, o.Conn, topology.Options{Namespace: "a", Partitions: 2})
	history(t, o.Conn, "a", "w", "open")
	for _, tc := range []struct {
		verb, body string
		code       schemas.Code
		says       string
	}{
		{"create", `{`, schemas.CodeInvalid, "cannot be read"},
		{"create", `{}`, schemas.CodeInvalid, "name is missing"},
		{"create", `{"name":"a.b"}`, schemas.CodeInvalid, "letters, digits"},
		{"create", `{"name":"n","partitions":1000}`, schemas.CodeInvalid, "Partitions is 1000"},
		{"create", `{"name":"n","replicas":2}`, schemas.CodeInvalid, "Replicas is 2"},
		{"create", `{"name":"n","maxBytes":5}`, schemas.CodeInvalid, "MaxBytes is 5"},
		{"create", `{"name":"n","replicas":3}`, schemas.CodeLimit, "set Replicas (--replicas) to 1"},
		{"create", `{"name":"a","partitions":4}`, schemas.CodeConflict, "fixed when a namespace is made"},
		{"describe", `{"name":"nobody"}`, schemas.CodeNotFound, "drover namespace list"},
		{"describe", `{}`, schemas.CodeInvalid, "empty"},
		{"delete", `{"name":"nobody"}`, schemas.CodeNotFound, "drover namespace list"},
		{"delete", `{"name":"a"}`, schemas.CodeConflict, "force the deletion"},
		{"delete", `{"name":"a","force":true,"reason":"` + strings.Repeat("x", 2000) + `"}`, schemas.CodeInvalid, "Reason has 2000"},
	} {
		a := ask[schemas.NamespaceResponse](t, o, tc.verb, tc.body)
		if a.Error == nil || a.Error.Code != tc.code || !strings.Contains(a.Error.Message, tc.says) || strings.Contains(a.Error.Message, "topology:") {
			t.Errorf("%s %.60s: got %+v, want %s saying %q", tc.verb, tc.body, a.Error, tc.code, tc.says)
		}
	}
	if left := belonging(t, o.Conn, "a"); len(left) == 0 {
		t.Fatal("a refused request deleted the namespace")
	}
}

func TestServiceLists(t *testing.T) {
	o := open(t, 1, namespaces.ServeOptions{Memory: true})
	if got := ask[schemas.NamespaceListResponse](t, o, "list", `{}`); got.Namespaces == nil || len(got.Namespaces) != 0 || got.After != "" {
		t.Fatalf("got %+v, want an empty list", got)
	}
	var want []string
	for i := range 5 {
		want = append(want, fmt.Sprint("n", i))
		ensure(t, o.Conn, topology.Options{Namespace: want[i]})
	}
	for limit := range 7 {
		var got []string
		after := ""
		for pages := 1; ; pages++ {
			page := ask[schemas.NamespaceListResponse](t, o, "list", fmt.Sprintf(`{"after":%q,"limit":%d}`, after, limit))
			if page.Error != nil || limit > 0 && len(page.Namespaces) > limit || pages > 6 {
				t.Fatalf("limit %d: got %+v", limit, page)
			}
			for _, i := range page.Namespaces {
				got = append(got, i.Name)
			}
			if after = page.After; after == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("limit %d: got %v, want %v", limit, got, want)
		}
	}
}

// A deletion that takes long is answered while it goes on, by whichever process is asked, and completed when it can be.
func TestServiceDeletes(t *testing.T) {
	virtual.Run(t, deletes)
}

func deletes(t *testing.T) {
	o := open(t, 3, namespaces.ServeOptions{Memory: true})
	ns := ensure(t, o.Conn, topology.Options{Namespace: "a"}).Name
	rev, err := o.KVCreate(t.Context(), ns.BucketClaims(), "partition.0", []byte("x"), 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if got := o.ok(t, "delete", `{"name":"a","reason":"to see","identity":"me"}`); got == nil || got.Status != schemas.NamespaceDeleting {
			t.Fatalf("got %+v, want it deleting", got)
		}
	}
	if list := ask[schemas.NamespaceListResponse](t, o, "list", `{}`); len(list.Namespaces) != 1 || list.Namespaces[0].Status != schemas.NamespaceDeleting {
		t.Fatalf("got %+v, want one that is deleting", list)
	}
	if a := ask[schemas.NamespaceResponse](t, o, "create", `{"name":"a"}`); a.Error == nil || a.Error.Code != schemas.CodeConflict {
		t.Fatalf("got %+v, want a conflict", a)
	}
	if err := o.KVDelete(t.Context(), ns.BucketClaims(), "partition.0", rev); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		a := ask[schemas.NamespaceResponse](t, o, "delete", `{"name":"a"}`)
		if a.Error != nil && a.Error.Code == schemas.CodeNotFound {
			break
		}
		if a.Error != nil || time.Now().After(deadline) {
			t.Fatalf("got %+v", a)
		}
	}
	if left := belonging(t, o.Conn, ns); len(left) != 0 {
		t.Fatalf("got %v left, want nothing", left)
	}
}
