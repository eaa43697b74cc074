package windows_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// once asks as a program does.
func (h *house) once(q ops.OnceRequest) (a ops.OnceResponse) {
	h.t.Helper()
	body, err := schemas.MarshalJSON(&q)
	if err != nil {
		h.t.Fatal(err)
	}
	m, err := natsconn.Of(h.Client).Request(h.t.Context(), ns.API("once"), nil, body)
	if err == nil {
		err = schemas.Unmarshal(m.Data, &a)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return a
}

// S2-12: of two callers at once exactly one is first. Whoever asks again gets the same answer, also from another node. The next period
// has its own first.
func TestOnce(t *testing.T) {
	live(t, func(h *house) {
		h.node("a", nil)
		h.node("b", nil)
		time.Sleep(time.Second)
		answers := map[string]ops.OnceResponse{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for _, caller := range []string{"one", "two"} {
			all.Go(func() {
				a := h.once(ops.OnceRequest{Name: "a report.*", Caller: caller})
				mu.Lock()
				defer mu.Unlock()
				answers[caller] = a
			})
		}
		all.Wait()
		one, two := answers["one"], answers["two"]
		if one.Error != nil || two.Error != nil || one.First == two.First || one.Period != "2000-01-01" || one.By.Caller != two.By.Caller {
			h.t.Errorf("answers %+v and %+v, want one that is first, and both with its name", one, two)
		}
		for caller, before := range answers {
			for range 4 {
				if a := h.once(ops.OnceRequest{Name: "a report.*", Caller: caller}); a.First != before.First {
					h.t.Errorf("%s: first %t, and %t before", caller, a.First, before.First)
				}
			}
		}
		for _, q := range []ops.OnceRequest{{Name: "a report"}, {Name: "a report.*", Period: "hour"}, {Name: "a report.*", Period: "0 6 * * *"}} {
			if a := h.once(q); !a.First || a.Error != nil {
				h.t.Errorf("%+v: %+v, want that it is another thing", q, a)
			}
			if a := h.once(q); a.First {
				h.t.Errorf("%+v: a second caller without a name is first too", q)
			}
		}
		h.until("00:59:59")
		if a := h.once(ops.OnceRequest{Name: "a report.*", Period: "hour"}); a.First {
			h.t.Error("the hour is not over, and another one is first")
		}
		time.Sleep(2 * time.Second)
		if a := h.once(ops.OnceRequest{Name: "a report.*", Period: "hour"}); !a.First || a.Period != "2000-01-01T0100Z" {
			h.t.Errorf("%+v, want that another hour begins anew", a)
		}
		if a := h.once(ops.OnceRequest{Name: "a report.*", TimeZone: "America/New_York"}); a.Period != "1999-12-31" || !a.First {
			h.t.Errorf("%+v, want that it is still another day there", a)
		}
	})
}

// S2-11: keys live three periods, and at least eight days.
func TestLifeOfPeriods(t *testing.T) {
	live(t, func(h *house) {
		h.node("a", nil)
		time.Sleep(time.Second)
		h.once(ops.OnceRequest{Name: "daily"})
		h.once(ops.OnceRequest{Name: "monthly", Period: "month"})
		for key, want := range map[string]time.Duration{"period.daily.2000-01-01": 8 * 24 * time.Hour, "period.monthly.2000-01": 93 * 24 * time.Hour} {
			m, err := natsconn.Of(h.Client).LastBySubject(h.t.Context(), "KV_"+ns.BucketSchedules(), "$KV."+ns.BucketSchedules()+"."+key)
			if err != nil {
				h.t.Fatal(err)
			}
			if got, err := time.ParseDuration(m.Header.Get("Nats-TTL")); err != nil || got != want {
				h.t.Errorf("%s lives %v, want %v", key, m.Header.Get("Nats-TTL"), want)
			}
		}
	})
}

// S2-12: bad requests are refused with the field and the way out, and take nothing.
func TestBadOnce(t *testing.T) {
	live(t, func(h *house) {
		h.node("a", nil)
		time.Sleep(time.Second)
		for field, q := range map[string]ops.OnceRequest{
			"name":       {},
			"period":     {Name: "x", Period: "fortnight"},
			"timeZone":   {Name: "x", TimeZone: "Mars/Olympus"},
			"caller":     {Name: "x", Caller: "a\nb"},
			"workflowId": {Name: "x", WorkflowID: strings.Repeat("w", 257)},
		} {
			a := h.once(q)
			if a.Error == nil || a.Error.Code != schemas.CodeInvalid || a.Error.Field != field || a.Error.Hint == "" {
				h.t.Errorf("%s: %+v", field, a.Error)
			}
		}
		if a := h.once(ops.OnceRequest{Name: "x"}); !a.First {
			h.t.Error("a refused request has taken the period")
		}
		if _, _, err := natsconn.Of(h.Client).KVGet(h.t.Context(), ns.BucketSchedules(), "period.x.fortnight"); !errors.Is(err, natsconn.ErrNotFound) {
			h.t.Errorf("error %v, want that there is no such key", err)
		}
	})
}
