package audit_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/ops/audit"
)

// deaf makes audits hear no answer to a verb while it is set.
func (h *house) deaf(verb string) (set *atomic.Bool, change func(*audit.Options)) {
	h.t.Helper()
	set = &atomic.Bool{}
	wire := cutwire.New(h.server.Conn())
	wire.Judge(func(subject string, _ []byte) cutwire.Verdict {
		if set.Load() && subject == ns.API(verb) {
			return cutwire.Swallow
		}
		return cutwire.Pass
	})
	conn, err := post.Dial(context.Background(), post.Options{InProcess: wire, Logger: h.log})
	if err != nil {
		h.t.Fatal(err)
	}
	h.stops = append(h.stops, conn.Close)
	return set, func(o *audit.Options) { o.Conn, o.Claims = conn, h.claims(conn, "audit") }
}

// Without the lists no task is read, and none is missing for it.
func TestUnknownListsMissNoTask(t *testing.T) {
	virtually(t, 1, func(t *testing.T, h *house) {
		h.all()
		h.decider("order", upTo("ActivitySuccess", "["+activityOf("a", "")+"]"))
		h.start("o", "order")
		h.take()
		time.Sleep(20 * time.Second)
		deaf, change := h.deaf("lists")
		deaf.Store(true)
		a := h.auditor(change)
		h.wantKinds(h.pass(a))
		deaf.Store(false)
		h.wantKinds(h.pass(a), "tasks-wait")
	})
}
