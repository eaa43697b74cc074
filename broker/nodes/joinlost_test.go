package nodes_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

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
				conn, err := post.Dial(t.Context(), post.Options{InProcess: w})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(conn.Close)
				r, err := nodes.Open(conn, nodes.Options{})
				if err != nil {
					t.Fatal(err)
				}
				m := join(t, r, record("n"), true)
				if !lost.Load() || m.Status() != status || (m.Former() != nil) != former {
					t.Fatalf("got %s, former %v, want %s", m.Status(), m.Former(), status)
				}
			})
		})
	}
}
