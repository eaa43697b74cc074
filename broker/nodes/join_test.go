package nodes_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

func TestJoin(t *testing.T) {
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, r *nodes.Registry, rec *schemas.NodeRecord)
		given   bool
		taken   bool
		status  schemas.NodeStatus
	}{
		{"no record", func(*testing.T, *nodes.Registry, *schemas.NodeRecord) {}, false, false, schemas.NodeRecovering},
		{"one that ended properly", func(t *testing.T, r *nodes.Registry, _ *schemas.NodeRecord) {
			if err := join(t, r, record("n"), false).Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, false, false, schemas.NodeRecovering},
		{"a live one", func(t *testing.T, r *nodes.Registry, _ *schemas.NodeRecord) { join(t, r, record("n"), false) }, false, true, ""},
		{"a live one, but the name was given", func(t *testing.T, r *nodes.Registry, _ *schemas.NodeRecord) {
			join(t, r, record("n"), false)
		}, true, false, schemas.NodeUnexpectedShutdown},
		{"one that died a moment ago", func(t *testing.T, r *nodes.Registry, _ *schemas.NodeRecord) { join(t, r, record("n"), false).Close() }, false, true, ""},
		{"one that died a moment ago, but the name was given", func(t *testing.T, r *nodes.Registry, _ *schemas.NodeRecord) {
			join(t, r, record("n"), false).Close()
		}, true, false, schemas.NodeUnexpectedShutdown},
		{"one that died long ago", func(t *testing.T, r *nodes.Registry, _ *schemas.NodeRecord) {
			join(t, r, record("n"), false).Close()
			time.Sleep(threshold)
		}, false, false, schemas.NodeUnexpectedShutdown},
		{"one that was marked", func(t *testing.T, r *nodes.Registry, _ *schemas.NodeRecord) {
			join(t, r, record("n"), false).Close()
			time.Sleep(threshold)
			sweep(t, r)
		}, false, false, schemas.NodeUnexpectedShutdown},
		{"an earlier boot of the same store", func(t *testing.T, r *nodes.Registry, rec *schemas.NodeRecord) {
			rec.StoreID = "store"
			former := record("n")
			former.StoreID = "store"
			join(t, r, former, false).Close()
		}, false, false, schemas.NodeUnexpectedShutdown},
		{"something else in its key", func(t *testing.T, r *nodes.Registry, _ *schemas.NodeRecord) { junk(t, r, "n") }, false, false, schemas.NodeRecovering},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded.Server) {
				r, rec := open(t, s), record("n")
				junkyard = embeddedtest.Connect(t, s)
				tt.prepare(t, r, &rec)
				m, err := r.Join(t.Context(), rec, nodes.JoinOptions{Given: tt.given})
				if tt.taken {
					if !errors.Is(err, nodes.ErrTaken) || !strings.Contains(err.Error(), "process 7") {
						t.Fatalf("got %v, want %v with who has it", err, nodes.ErrTaken)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(m.Close)
				if m.Status() != tt.status || (m.Former() != nil) != (tt.status == schemas.NodeUnexpectedShutdown) {
					t.Fatalf("got %s, former %v, want %s", m.Status(), m.Former(), tt.status)
				}
				want(t, r, "n "+string(tt.status))
			})
		})
	}
}

var junkyard *natsconn.Conn

func junk(t *testing.T, _ *nodes.Registry, key string) {
	t.Helper()
	if _, err := junkyard.KVCreate(t.Context(), subject.BucketNodes, key, []byte("not a record"), 0); err != nil {
		t.Fatal(err)
	}
}

// Of several that want one name in the same moment exactly one gets it.
func TestOneName(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		const contenders = 8
		got := make(chan error, contenders)
		for range contenders {
			r, rec := open(t, s), record("n")
			go func() {
				m, err := r.Join(t.Context(), rec, nodes.JoinOptions{})
				if err == nil {
					t.Cleanup(m.Close)
				}
				got <- err
			}()
		}
		won := 0
		for range contenders {
			switch err := <-got; {
			case err == nil:
				won++
			case !errors.Is(err, nodes.ErrTaken):
				t.Error(err)
			}
		}
		if won != 1 {
			t.Fatalf("%d of %d got the name, want 1", won, contenders)
		}
	})
}
