package broker_test

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/schemas"
)

// accountOf gives the account of the server limits; those that are left out are none.
func (f *fleet) accountOf(l embeddedtest.Limits) {
	f.t.Helper()
	for _, limit := range []*int64{&l.MaxMemory, &l.MaxStore, &l.MemoryMaxStreamBytes, &l.StoreMaxStreamBytes} {
		*limit = cmp.Or(*limit, -1)
	}
	for _, limit := range []*int{&l.MaxStreams, &l.MaxConsumers, &l.MaxAckPending} {
		*limit = cmp.Or(*limit, -1)
	}
	embeddedtest.Limit(f.t, f.server.Conn(), "", l)
}

// An account that is nearly full takes no new runs, and says whose limit it is. What runs has the rest, and so have the claims of owners:
// without these nobody would be there to purge anything.
func TestAccountLimit(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.accountOf(embeddedtest.Limits{MaxMemory: 8 << 20})
		f.node("a", nil)
		f.start(startO)
		input := strings.Repeat("x", 100<<10)
		var refused map[string]any
		for i := 0; refused == nil; i++ {
			a := f.start(fmt.Sprintf(`{"workflowId":"w%d","type":"other","input":%q}`, i, input))
			refused, _ = a["error"].(map[string]any)
			time.Sleep(3 * time.Second)
		}
		if hint, _ := refused["hint"].(string); refused["code"] != string(schemas.CodeLimit) || !strings.Contains(hint, "storage limit of the account") {
			t.Fatalf("got %v, want the limit and the way out", refused)
		}
		f.decider("order", one(`,"startToCloseTimeout":3600`))
		f.pull().success()
		if got := f.result("o"); got != "completed" {
			t.Fatalf("got %s", got)
		}
	})
}

// Inputs of starts that are refused do not take what is left of an account.
func TestUploadIntoAFullAccount(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.accountOf(embeddedtest.Limits{MaxMemory: 16 << 20})
		f.node("a", nil)
		f.api("list", `{}`)
		c := payloads.NewClient(f.post, ns, time.Minute)
		for i := range 20 {
			_, err := c.Upload(t.Context(), large(1<<20-i))
			if err == nil {
				continue
			}
			refused, ok := errors.AsType[*schemas.Error](err)
			if !ok || refused.Code != schemas.CodeLimit || !strings.Contains(refused.Hint, "storage limit of the account") {
				t.Fatalf("got %v, want %s and the way out", err, schemas.CodeLimit)
			}
			f.start(startO)
			f.decider("order", one(`,"startToCloseTimeout":3600`))
			f.pull().success()
			if got := f.result("o"); got != "completed" {
				t.Fatalf("got %s", got)
			}
			return
		}
		t.Fatal("20 MB were taken by an account of 16 MB")
	})
}
