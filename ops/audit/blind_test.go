package audit_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/ops/audit"
	"github.com/droverhq/drover/schemas"
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
	conn, err := natsconn.Dial(context.Background(), natsconn.Options{InProcess: wire, Logger: h.log})
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

// What a pass could not look at is not said to be gone.
func TestUnseenIsNotGone(t *testing.T) {
	for _, tc := range []struct {
		name  string
		make  func(*house) func(*audit.Options) // and what the audit connects through
		blind func(*house)
		says  string // what was found before
	}{
		{"lists that nobody tells of", func(h *house) func(*audit.Options) {
			h.all()
			h.decider("order", upTo("ActivitySuccess", "["+activityOf("a", "")+"]"))
			h.start("o", "order")
			return nil
		}, nil, `list "main" has 1 task since`},
		{"runs whose owner is gone", func(h *house) func(*audit.Options) {
			h.all()
			h.decider("order", upTo("Signal", "[]"))
			h.start("o", "order")
			return nil
		}, func(h *house) { h.stops[2]() }, `workflow "o" of type "order" has nothing open`},
		{"decisions of runs whose owner is gone", func(h *house) func(*audit.Options) {
			h.all()
			h.start("o", "order")
			return nil
		}, func(h *house) { h.stops[2]() }, `no decider of type "order" listens`},
		{"more alarms than a cheap pass reads", func(h *house) func(*audit.Options) {
			h.master()
			due, err := schemas.MarshalJSON(&schemas.Alarm{V: schemas.Version, Due: schemas.At(time.Now())})
			if err != nil {
				h.t.Fatal(err)
			}
			for i := range 20_001 {
				if err := h.conn.Publish(ns.Alarm(0, fmt.Sprint("o", i), "r"), nil, due); err != nil {
					h.t.Fatal(err)
				}
			}
			return nil
		}, nil, "partition 0 has 20001 overdue alarms"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, h *house) {
				tc.make(h)
				log := &lines{}
				h.log.AddHook(log)
				deaf, change := h.deaf("lists")
				h.run(h.auditor(change), func() {})
				time.Sleep(90 * time.Second)
				log.want(t, "audit: "+tc.says, 1)
				if tc.blind != nil {
					tc.blind(h)
				} else {
					deaf.Store(true)
				}
				time.Sleep(12 * time.Minute)
				log.want(t, "no longer: "+tc.says, 0)
				log.want(t, "audit: "+tc.says, 1)
			})
		})
	}
}
