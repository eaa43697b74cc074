package namespaces

import (
	"errors"
	"testing"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/schemas"
)

// Somebody forces a deletion while another one, that nobody forces, still counts the open runs: it does not share the refusal.
func TestServiceForcesADeletionBesideAnother(t *testing.T) {
	conn := embeddedtest.Dial(t)
	if _, err := topology.Ensure(t.Context(), conn, topology.Options{Namespace: "a", Memory: true}); err != nil {
		t.Fatal(err)
	}
	s := &service{conn: conn, o: ServeOptions{Logger: logx.Or(nil)}, ctx: t.Context(), deletions: map[subject.Namespace]*job{}}
	counts := &job{done: make(chan struct{}), err: &topology.OpenRunsError{Open: 1, WorkflowID: "w"}}
	close(counts.done)
	s.deletions["a"] = counts
	if _, err := s.delete(&schemas.NamespaceRequest{Name: "a"}); !errors.Is(err, topology.ErrOpenRuns) {
		t.Fatalf("got %v, want %v", err, topology.ErrOpenRuns)
	}
	if _, err := s.delete(&schemas.NamespaceRequest{Name: "a", Force: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := topology.Lookup(t.Context(), conn, "a"); !errors.Is(err, topology.ErrNoNamespace) {
		t.Fatalf("got %v, want %v", err, topology.ErrNoNamespace)
	}
	s.end()
}
