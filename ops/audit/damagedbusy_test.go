package audit_test

import (
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// A damaged history is told of, whether a message waits for its run or not.
func TestDamagedRunWithAMessage(t *testing.T) {
	virtually(t, 1, func(t *testing.T, h *house) {
		h.master()
		h.timers("t1")
		stop := h.broker("b")
		h.decider("order", upTo("Never", "[]"))
		h.start("o", "order")
		h.signal("o", "one")
		time.Sleep(time.Second)
		h.signal("o", "two")
		time.Sleep(5 * time.Second)
		stop()
		h.damage("o", 1)
		h.broker("b2")
		time.Sleep(10 * time.Second)
		a := h.auditor()
		before := h.pass(a)
		t.Logf("before a message comes: %+v", before.Findings)
		h.conn.Publish("drover.default.signal.o.three", nil, nil)
		time.Sleep(5 * time.Minute)
		after := h.pass(a)
		t.Logf("after one: %+v", after.Findings)
		found := false
		for _, f := range after.Findings {
			found = found || f.Kind == "unreadable"
		}
		if !found {
			t.Errorf("a damaged history is found no more once a message waits for its run; found %d findings", len(after.Findings))
		}
	})
}

// damage writes the history anew, with another body in a record of a workflow.
func (h *house) damage(id string, nth int) {
	h.t.Helper()
	ctx := h.t.Context()
	var all []natsconn.Stored
	if err := h.conn.Scan(ctx, ns.StreamHistory(0), natsconn.ReadOptions{}, func(s natsconn.Stored) error {
		s.Data = append([]byte(nil), s.Data...)
		all = append(all, s)
		return nil
	}); err != nil {
		h.t.Fatal(err)
	}
	js := h.conn.JetStream()
	s, err := js.Stream(ctx, ns.StreamHistory(0))
	if err != nil {
		h.t.Fatal(err)
	}
	c := s.CachedInfo().Config
	if err := js.DeleteStream(ctx, c.Name); err != nil {
		h.t.Fatal(err)
	}
	c.FirstSeq = all[0].Seq
	if _, err := js.CreateStream(ctx, c); err != nil {
		h.t.Fatal(err)
	}
	n := 0
	for _, m := range all {
		body, header := m.Data, natsconn.Header{}
		if v := m.Header.Get(schemas.StatusHeader); v != "" {
			header[schemas.StatusHeader] = []string{v}
		}
		if _, wid, _, err := subject.ParseHistory(m.Subject); err == nil && wid == id {
			if n == nth {
				body = []byte("damaged")
			}
			n++
		}
		if seq, err := h.conn.PublishSync(ctx, m.Subject, header, body); err != nil || seq != m.Seq {
			h.t.Fatal(err, seq, m.Seq)
		}
	}
	h.t.Logf("%d records of %s", n, id)
}
