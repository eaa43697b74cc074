package drover_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/namespaces"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// keeper runs the service for namespaces, as a server with the role ops does. It works in a bubble.
func keeper(t *testing.T, s *service) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := namespaces.Serve(ctx, s.conn, namespaces.ServeOptions{Memory: true}); err != nil {
			t.Errorf("got %v, want nil", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	synctest.Wait()
}

func TestNamespacesLive(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, s := newService(t, drover.Options{Namespace: "elsewhere"})
		keeper(t, s)
		yes := true
		made, err := c.CreateNamespace(t.Context(), "shop", &drover.NamespaceOptions{
			Partitions: 2, Replicas: 1, MaxBytes: 32 << 20, Compression: "s2", RequireTypes: &yes, Description: "a shop", FlowRetention: "1",
		})
		if err != nil {
			t.Fatal(err)
		}
		want := &schemas.NamespaceInfo{
			Name: "shop", Status: schemas.NamespaceReady, Partitions: 2, Replicas: 1, MaxBytes: 32 << 20, Compression: "s2", RequireTypes: true,
			Description: "a shop", FlowRetention: "1", Retention: "7d", Storage: "memory", CreatedAt: made.CreatedAt,
		}
		if d := cmp.Diff(want, made); d != "" || made.CreatedAt == 0 {
			t.Fatalf("created at %v (-want +got):\n%s", made.CreatedAt, d)
		}
		if got, err := c.CreateNamespace(t.Context(), "shop", nil); err != nil || cmp.Diff(made, got) != "" {
			t.Fatalf("got %+v, %v of a repeat, want it as it was", got, err)
		}
		if _, err := c.CreateNamespace(t.Context(), "barn", nil); err != nil {
			t.Fatal(err)
		}
		got, err := c.DescribeNamespace(t.Context(), "shop")
		if err != nil || len(got.Usage) < 5 || got.Lists != nil {
			t.Fatalf("got %+v, %v, want its usage and no lists", got, err)
		}
		var names []string
		for i, err := range c.ListNamespaces(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, i.Name)
		}
		if !slices.Equal(names, []string{"barn", "shop"}) {
			t.Fatalf("got %v, want barn and shop", names)
		}

		if _, err := s.conn.PublishSync(t.Context(), subject.Namespace("shop").History(0, "w", "r"), natsconn.Header{"Drover-Status": {"open"}}, nil); err != nil {
			t.Fatal(err)
		}
		err = c.DeleteNamespace(t.Context(), "shop", nil)
		if e := wantError(t, err, drover.ErrConflict); e.ID != "shop" || !strings.Contains(err.Error(), `"w"`) {
			t.Fatalf("got %v", err)
		}
		if err := c.DeleteNamespace(t.Context(), "shop", &drover.DeleteNamespaceOptions{Force: true, Reason: "a test"}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"shop", "nobody"} {
			wantError(t, c.DeleteNamespace(t.Context(), name, nil), drover.ErrNotFound)
			_, err := c.DescribeNamespace(t.Context(), name)
			wantError(t, err, drover.ErrNotFound)
		}
		_, err = c.CreateNamespace(t.Context(), "barn", &drover.NamespaceOptions{Partitions: 9})
		wantError(t, err, drover.ErrConflict)
		_, err = c.CreateNamespace(t.Context(), "a b", nil)
		wantError(t, err, drover.ErrInvalid)
	})
}

// The end of a deletion is waited for, however long servers take to let go, and by whomever it is completed.
func TestDeleteNamespaceWaits(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, s := newService(t, drover.Options{})
		keeper(t, s)
		for _, end := range []string{"let go", "completed by another"} {
			if _, err := c.CreateNamespace(t.Context(), "shop", nil); err != nil {
				t.Fatal(err)
			}
			if _, err := s.conn.KVCreate(t.Context(), subject.Namespace("shop").BucketClaims(), "partition.0", nil, 8*time.Second); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			done := make(chan error, 1)
			go func() { done <- c.DeleteNamespace(t.Context(), "shop", nil) }()
			time.Sleep(4 * time.Second)
			if end == "completed by another" {
				if err := topology.Delete(t.Context(), s.conn, "shop", topology.DeleteOptions{LetGo: time.Millisecond}); err != nil {
					t.Fatal(err)
				}
			}
			if err := <-done; err != nil {
				t.Fatalf("%s: got %v", end, err)
			}
			if took := time.Since(began); took < 4*time.Second || took > 12*time.Second {
				t.Fatalf("%s: it took %v", end, took)
			}
			wantError(t, c.DeleteNamespace(t.Context(), "shop", nil), drover.ErrNotFound)
		}
		// The caller's ctx ends the wait, not the deletion.
		if _, err := c.CreateNamespace(t.Context(), "shop", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := s.conn.KVCreate(t.Context(), subject.Namespace("shop").BucketClaims(), "partition.0", nil, 8*time.Second); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if err := c.DeleteNamespace(ctx, "shop", nil); !errors.Is(err, drover.ErrTimeout) || !strings.Contains(err.Error(), "may still be done") {
			t.Fatalf("got %v, want %v", err, drover.ErrTimeout)
		}
		time.Sleep(15 * time.Second)
		wantError(t, c.DeleteNamespace(t.Context(), "shop", nil), drover.ErrNotFound)
	})
}

// A server that stood still reads a try to delete a namespace after its deletion, and after the creation of the next one of its
// name, which stays.
func TestDeletionThatComesLate(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, s := newService(t, drover.Options{})
		keeper(t, s)
		tries := make(chan []byte, 10)
		if _, err := s.conn.Subscribe(schemas.NamespaceSubject("delete"), "", func(m natsconn.Msg) { tries <- m.Data }); err != nil {
			t.Fatal(err)
		}
		create := func() {
			if _, err := c.CreateNamespace(t.Context(), "shop", nil); err != nil {
				t.Fatal(err)
			}
		}
		create()
		if err := c.DeleteNamespace(t.Context(), "shop", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		create()
		m, err := s.conn.Request(t.Context(), schemas.NamespaceSubject("delete"), nil, <-tries)
		if err != nil {
			t.Fatal(err)
		}
		var a schemas.NamespaceResponse
		if err := schemas.Unmarshal(m.Data, &a); err != nil || a.Error == nil || a.Error.Code != schemas.CodeNotFound {
			t.Fatalf("got %+v, %v, want it not found", a, err)
		}
		if got, err := c.DescribeNamespace(t.Context(), "shop"); err != nil || got.Status != schemas.NamespaceReady {
			t.Fatalf("got %+v, %v, want the new one as it was", got, err)
		}
		if err := c.DeleteNamespace(t.Context(), "shop", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := c.DescribeNamespace(t.Context(), "shop"); !errors.Is(err, drover.ErrNotFound) {
			t.Fatalf("got %v, want the new one deleted", err)
		}
	})
}

func TestNamespacesNeedAServer(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, _ := newService(t, drover.Options{Timeout: 2 * time.Second})
		_, err := c.DescribeNamespace(t.Context(), "shop")
		if e := wantError(t, err, drover.ErrUnavailable); !strings.Contains(e.Hint, "the role ops") {
			t.Fatalf("got hint %q, want one about the role", e.Hint)
		}
		for _, err := range c.ListNamespaces(t.Context()) {
			if e := wantError(t, err, drover.ErrUnavailable); !strings.Contains(e.Hint, "the role ops") {
				t.Fatalf("got hint %q, want one about the role", e.Hint)
			}
		}
	})
}

// exampleKeeper plays the part of a server that has the role ops, and keeps an example short.
func exampleKeeper(ctx context.Context, c *drover.Client) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- namespaces.Serve(ctx, natsconn.Of(c), namespaces.ServeOptions{Memory: true}) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			fmt.Println(err)
		}
	}
}

func ExampleClient_CreateNamespace() {
	ctx, c := exampleClient()
	defer c.Close()
	defer exampleKeeper(ctx, c)()

	i, err := c.CreateNamespace(ctx, "barn", &drover.NamespaceOptions{Partitions: 2, Description: "where the oxen are"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(i.Name, i.Partitions, i.Description)
	if err := c.DeleteNamespace(ctx, "barn", &drover.DeleteNamespaceOptions{Reason: "the oxen are gone"}); err != nil {
		fmt.Println(err)
	}
	// Output: barn 2 where the oxen are
}

func ExampleClient_ListNamespaces() {
	ctx, c := exampleClient()
	defer c.Close()
	defer exampleKeeper(ctx, c)()

	for i, err := range c.ListNamespaces(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(i.Name, i.Status)
	}
	// Output: default ready
}
