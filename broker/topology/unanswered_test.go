package topology_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/handover"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/cutwire"
)

// deaf is a connection to a server on which a question to JetStream can be lost, and one on which all are answered.
func deaf(t *testing.T) (q *cutwire.Questions, conn, well *natsconn.Conn) {
	t.Helper()
	s := embeddedtest.Serve(t, embedded.Options{DontListen: true})
	wire := cutwire.New(s.Conn())
	conn = embeddedtest.Through(t, wire)
	return cutwire.Ask(wire, cutwire.Swallow, "$JS.API.STREAM.", "$JS.API.DIRECT."), conn, embeddedtest.Connect(t, s)
}

// unanswered does something again and again, each time without an answer to another question, until all are answered. It fails the test
// if nothing is said of one; but for those of excused, which something else is done about.
func unanswered(t *testing.T, q *cutwire.Questions, do func() error, excused ...string) {
	t.Helper()
	for n := 0; ; n++ {
		var err error
		lost := q.Without(n, func() { err = do() })
		switch isExcused := slices.ContainsFunc(excused, func(e string) bool { return strings.HasPrefix(lost, "$JS.API."+e) }); {
		case lost == "" && err != nil:
			t.Fatalf("all was answered: got %v", err)
		case lost == "":
			if n == 0 {
				t.Error("nothing was asked")
			}
			return
		case err == nil && !isExcused:
			t.Errorf("nobody has answered %s, and nothing is said of it", lost)
		}
	}
}

// Who looks at namespaces is told less by no server that does not answer: it is told that there was no answer.
func TestNoAnswerHidesNothing(t *testing.T) {
	for name, look := range map[string]func(context.Context, *natsconn.Conn) error{
		"names": func(ctx context.Context, conn *natsconn.Conn) error {
			_, err := topology.Names(ctx, conn)
			return err
		},
		"list": func(ctx context.Context, conn *natsconn.Conn) error {
			_, err := topology.List(ctx, conn, nil)
			return err
		},
		"lookup": func(ctx context.Context, conn *natsconn.Conn) error {
			_, err := topology.Lookup(ctx, conn, "default")
			return err
		},
		"describe": func(ctx context.Context, conn *natsconn.Conn) error {
			_, err := topology.Describe(ctx, conn, "default")
			return err
		},
		"inspect": func(ctx context.Context, conn *natsconn.Conn) error {
			_, err := topology.Inspect(ctx, conn, "default")
			return err
		},
		"ensure": func(ctx context.Context, conn *natsconn.Conn) error {
			_, err := topology.Ensure(ctx, conn, topology.Options{Memory: true})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				q, conn, well := deaf(t)
				for _, ns := range []string{"default", "other"} {
					if _, err := topology.Ensure(t.Context(), well, topology.Options{Namespace: ns, Partitions: 1, Memory: true}); err != nil {
						t.Fatal(err)
					}
				}
				if err := topology.EnsureList(t.Context(), well, "default", "main", topology.ListOptions{}); err != nil {
					t.Fatal(err)
				}
				unanswered(t, q, func() error { return look(t.Context(), conn) })
			})
		})
	}
}

// Whichever stream or bucket of a namespace could not be made, or looked for: who makes it is told, and the next who tries completes it.
func TestNoAnswerLeavesNoHalfANamespace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q, conn, well := deaf(t)
		unanswered(t, q, func() error {
			_, err := topology.Ensure(t.Context(), conn, topology.Options{Partitions: 1, Memory: true})
			if err == nil {
				if i, err := topology.Describe(t.Context(), well, "default"); err != nil || i.Incomplete {
					t.Errorf("made, and then: got %+v, %v", i, err)
				}
			}
			return err
		})
	})
}

// A namespace with open runs is not deleted because they could not be counted, and one that is being deleted is not said to be gone before it is.
func TestNoAnswerDeletesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q, conn, well := deaf(t)
		if _, err := topology.Ensure(t.Context(), well, topology.Options{Partitions: 2, Memory: true}); err != nil {
			t.Fatal(err)
		}
		history(t, well, "default", "w", "open")
		unanswered(t, q, func() error {
			err := topology.Delete(t.Context(), conn, "default", topology.DeleteOptions{})
			if i, lookup := topology.Lookup(t.Context(), well, "default"); lookup != nil || i.Deleting {
				t.Fatalf("after %v: got %+v, %v, want it as it was", err, i, lookup)
			}
			if open, ok := errors.AsType[*topology.OpenRunsError](err); ok && open.Open == 1 {
				return nil
			}
			return err
		})
		unanswered(t, q, func() error {
			if err := topology.Delete(t.Context(), well, "default", topology.DeleteOptions{Force: true}); err != nil && !errors.Is(err, topology.ErrNoNamespace) {
				t.Fatal(err)
			}
			if _, err := topology.Ensure(t.Context(), well, topology.Options{Partitions: 2, Memory: true}); err != nil {
				t.Fatal(err)
			}
			err := topology.Delete(t.Context(), conn, "default", topology.DeleteOptions{Force: true})
			if left := names(t, well); err == nil && len(left) > 1 { // the bucket of nodes is of all namespaces
				t.Errorf("it is deleted, and left are %v", left)
			}
			return err
		}, "STREAM.UPDATE.", // each try has another time in it, so that none is lost but the first
			"STREAM.MSG.GET.KV_drover-default-claims", "STREAM.INFO.KV_drover-default-claims", "DIRECT.GET.KV_drover-default-claims") // it does not wait for ever that claims are let go
	})
}

// Buckets whose revisions are fences are made anew above those that were given, or not at all.
func TestNoAnswerBeginsNoFencesBelow(t *testing.T) { // P-2
	bubble(t, func(t *testing.T) {
		q, conn, well := deaf(t)
		ns, err := topology.Ensure(t.Context(), well, topology.Options{Partitions: 2, Memory: true})
		if err != nil {
			t.Fatal(err)
		}
		const given = 900_000
		if _, err := handover.Fence(t.Context(), well, ns.Name, 1, given, "n"); err != nil {
			t.Fatal(err)
		}
		history(t, well, ns.Name, "w", "open")
		for _, bucket := range []string{ns.Name.BucketClaims(), ns.Name.BucketLocks()} {
			if err := well.JetStream().DeleteStream(t.Context(), "KV_"+bucket); err != nil {
				t.Fatal(err)
			}
		}
		unanswered(t, q, func() error {
			_, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true})
			return err
		})
		if rev, err := well.KVCreate(t.Context(), ns.Name.BucketClaims(), "partition.1", []byte("x"), time.Minute); err != nil || rev <= given {
			t.Errorf("the first claim has number %d (%v), want one above %d", rev, err, given)
		}
		// Each record may have changed more than one lock.
		if rev, err := well.KVCreate(t.Context(), ns.Name.BucketLocks(), "l", []byte("x"), 0); err != nil || rev <= 2*25 {
			t.Errorf("the first lock has fence %d (%v), want one above all that two records may have given", rev, err)
		}
	})
}
