package broker_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

// E13: a thousand requests of each verb that reads all of something, at once: every one is answered, in
// full or with "unavailable" and what to do, and a client beside them gets its list.
func TestManyScansAtOnce(t *testing.T) {
	for verb, body := range map[string]string{
		"list": `{}`, "count": `{}`, "lists": `{}`, "locks": `{}`, "dead": `{}`, "typeList": `{}`,
		"audit": `{"partition":0,"workflows":["gone"]}`, "spans": `{"workflowId":"o"}`,
	} {
		t.Run(verb, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) { testManyScans(t, f, verb, body) })
		})
	}
}

func testManyScans(t *testing.T, f *fleet, verb, body string) {
	f.node("a", nil)
	f.start(`{"workflowId":"o","type":"idle"}`)
	var asking sync.WaitGroup
	var mu sync.Mutex
	full, unavailable := 0, 0
	for range 1000 {
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			m, err := f.nc.RequestWithContext(ctx, ns.API(verb), []byte(body))
			if err != nil {
				t.Errorf("no answer: %v", err)
				return
			}
			var a schemas.AckResponse
			if err := json.Unmarshal(m.Data, &a); err != nil {
				t.Errorf("%s: %v", m.Data, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case a.Error == nil:
				full++
			case a.Error.Code == schemas.CodeUnavailable && a.Error.Hint != "" && !a.Error.Final:
				unavailable++
			default:
				t.Errorf("got %+v", a.Error)
			}
		})
	}
	conn := f.dial(f)
	defer conn.Close()
	c, err := drover.Connect(t.Context(), &drover.Options{Conn: conn.NATS()})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range c.List(t.Context(), drover.ListOptions{}) {
		if err != nil {
			t.Errorf("the client beside them: %v", err)
		}
	}
	asking.Wait()
	if full == 0 {
		t.Errorf("none was answered in full, %d with unavailable", unavailable)
	}
	t.Logf("%d in full, %d unavailable", full, unavailable)
}
