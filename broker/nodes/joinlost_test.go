package nodes_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// wired opens the register on a wire.
func wired(t *testing.T, w *cutwire.Wire) *nodes.Registry {
	t.Helper()
	conn := embeddedtest.Through(t, w)
	r, err := nodes.Open(conn, nodes.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The answer to the write by which a node joins is lost: that it found an earlier self is not forgotten when it writes again.
func TestJoinWhoseAnswerIsLost(t *testing.T) {
	for name, former := range map[string]bool{"after a crash": true, "for the first time": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded.Server) {
				status := schemas.NodeRecovering
				if former {
					join(t, open(t, s), record("n"), false).Close()
					status = schemas.NodeUnexpectedShutdown
				}
				var lost atomic.Bool
				w := cutwire.New(s.Conn())
				w.Judge(func(subj string, _ []byte) cutwire.Verdict {
					if strings.HasPrefix(subj, prefix) && lost.CompareAndSwap(false, true) {
						return cutwire.Unanswered
					}
					return cutwire.Pass
				})
				m := join(t, wired(t, w), record("n"), true)
				if !lost.Load() || m.Status() != status || (m.Former() != nil) != former {
					t.Fatalf("got %s, former %v, want %s", m.Status(), m.Former(), status)
				}
			})
		})
	}
}

// A try to join is given up, and its record stands. The next try of the same start says as well what that one has found.
func TestJoinIsTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		join(t, open(t, s), record("n"), false).Close()
		w := cutwire.New(s.Conn())
		w.Judge(func(subj string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, prefix) {
				return cutwire.Unanswered
			}
			return cutwire.Pass
		})
		r := wired(t, w)
		rec := record("n")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.Join(ctx, rec, nodes.JoinOptions{Given: true}); err == nil {
			t.Fatal("joined without an answer")
		}
		m, err := open(t, s).Join(t.Context(), rec, nodes.JoinOptions{Given: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close)
		if m.Status() != schemas.NodeUnexpectedShutdown || m.Former() == nil {
			t.Fatalf("got %s, former %v, want %s", m.Status(), m.Former(), schemas.NodeUnexpectedShutdown)
		}
	})
}

// The answer to the removal of a node's record is lost: the node has left all the same.
func TestLeaveWhoseAnswerIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		var leaving, lost atomic.Bool
		w := cutwire.New(s.Conn())
		w.Judge(func(subj string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, prefix) && leaving.Load() && lost.CompareAndSwap(false, true) {
				return cutwire.Unanswered
			}
			return cutwire.Pass
		})
		m := join(t, wired(t, w), record("n"), false)
		leaving.Store(true)
		if err := m.Leave(t.Context()); err != nil || !lost.Load() {
			t.Fatalf("got %v, lost %v", err, lost.Load())
		}
		want(t, open(t, s))
	})
}

// A cluster that had no majority has a write of the node's earlier self under way, and refuses all others of its record until that is decided.
func TestJoinWaitsForAWriteUnderWay(t *testing.T) {
	for name, c := range map[string]struct {
		decided time.Duration
		joins   bool
	}{"it is decided soon": {5 * time.Second, true}, "it never is": {time.Hour, false}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded.Server) {
				conn := embeddedtest.Connect(t, s)
				kv, err := conn.JetStream().Stream(t.Context(), "KV_"+subject.BucketNodes)
				if err != nil {
					t.Fatal(err)
				}
				cfg := kv.CachedInfo().Config
				cfg.Subjects = []string{prefix + "others"} // the test answers in its place
				if _, err := conn.JetStream().UpdateStream(t.Context(), cfg); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if _, err := conn.Subscribe(prefix+"n", "", func(m natsconn.Msg) {
					answer := `{"error":{"code":400,"err_code":10164,"description":"wrong last sequence"}}`
					if time.Since(began) >= c.decided {
						answer = `{"stream":"KV_drover-nodes","seq":7}`
					}
					if err := conn.Publish(m.Reply, nil, []byte(answer)); err != nil {
						t.Error(err)
					}
				}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // the server knows of the one who answers
				m, err := open(t, s).Join(t.Context(), record("n"), nodes.JoinOptions{})
				if took := time.Since(began); (err == nil) != c.joins || took < min(c.decided, 9*time.Second) || took > 12*time.Second {
					t.Errorf("got %v after %v", err, took)
				}
				if err == nil {
					m.Close()
				} else if !errors.Is(err, natsconn.ErrInFlight) {
					t.Errorf("got %v, want that another write is under way", err)
				}
			})
		})
	}
}
