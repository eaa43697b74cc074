package broker_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/virtual"
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
	embeddedtest.Limit(f.t, f.server.Load().Conn(), "", l)
}

// An account that is nearly full takes no new runs, and says whose limit it is. What runs has the rest, and so have the claims of owners:
// without these nobody would be there to purge anything.
func TestAccountLimit(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.accountOf(embeddedtest.Limits{MaxMemory: 8 << 20})
		f.node("a", nil)
		f.start(startO)
		input := strings.Repeat("x", 300<<10)
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
		f.completes("o")
	})
}

// An object store that the account has no room for is not made later either, and whoever uploads is told so.
func TestUploadWithoutAnObjectStore(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.api("list", `{}`)
		f.accountOf(embeddedtest.Limits{MaxStreams: 1})
		_, err := payloads.NewClient(f.post, ns, time.Minute).Upload(t.Context(), large(1<<20))
		refused, ok := errors.AsType[*schemas.Error](err)
		if !ok || refused.Code != schemas.CodeLimit || !strings.Contains(refused.Message, "limit of streams") {
			t.Fatalf("got %v, want %s and the way out", err, schemas.CodeLimit)
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
			f.completes("o")
			return
		}
		t.Fatal("20 MB were taken by an account of 16 MB")
	})
}

// A partition whose history this user may not write to is tried again now and then, not as fast as the machine can.
func TestRefusedTakeOverIsTriedSeldom(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		srv, _ := embeddedtest.Start(t, false, embeddedtest.User{
			Name: "narrow", Subscribe: []string{">"}, Publish: []string{"$JS.>", "$KV.>", "_INBOX.>", "drover.default.owner.*", "drover.default.owned.*"},
		})
		log, kept := logtest.NewNullLogger()
		if _, err := topology.Ensure(t.Context(), embeddedtest.As(t, srv, embeddedtest.Root), topology.Options{Memory: true, Partitions: 1}); err != nil {
			t.Fatal(err)
		}
		held, err := claims.Open(embeddedtest.As(t, srv, "narrow"), ns.BucketClaims(), claims.Options{Node: "a"})
		if err != nil {
			t.Fatal(err)
		}
		b, err := broker.New(func(context.Context, string) (*natsconn.Conn, error) { return embeddedtest.As(t, srv, "narrow"), nil }, broker.Options{Partitions: 1, Claims: held, Node: "a", Logger: log})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := b.Run(ctx); err != nil {
			t.Fatal(err)
		}
		refused := 0
		for _, e := range kept.AllEntries() {
			if err, _ := e.Data[logrus.ErrorKey].(error); e.Level == logrus.ErrorLevel && errors.Is(err, natsconn.ErrPermission) {
				refused++
			}
		}
		if refused < 2 || refused > 12 {
			t.Fatalf("got %d refused take-overs in 20 s, want one every two seconds", refused)
		}
	})
}

// A NATS server that is nearly full takes no new runs, no signals and no uploads, says whose limit it is, and takes them again when there is
// room. What runs has the rest.
func TestServerLimit(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var bytes atomic.Int64
		f.node("a", nil, func(o *broker.Options) { o.Quota = func() (int64, int64) { return bytes.Load(), 1000 } })
		f.start(startO)
		refused := func(what string, a map[string]any) {
			t.Helper()
			e, _ := a["error"].(map[string]any)
			if hint, _ := e["hint"].(string); e["code"] != string(schemas.CodeLimit) || !strings.Contains(hint, "NATS server more room") {
				t.Errorf("%s: got %v, want the limit and the way out", what, a)
			}
		}
		for _, tt := range []struct {
			bytes int64
			full  bool
		}{{900, false}, {950, true}, {899, false}, {1000, true}} {
			bytes.Store(tt.bytes)
			time.Sleep(3 * time.Second)
			start := f.start(fmt.Sprintf(`{"workflowId":"w%d","type":"other"}`, tt.bytes))
			signal := f.api("signal", `{"workflowId":"o","name":"s"}`)
			if !tt.full {
				if start["error"] != nil || signal["error"] != nil {
					t.Errorf("with %d of 1000 bytes: got %v, %v", tt.bytes, start, signal)
				}
				continue
			}
			refused("start", start)
			refused("signal", signal)
			_, err := payloads.NewClient(f.post, ns, time.Minute).Upload(t.Context(), large(1<<20))
			if e, ok := errors.AsType[*schemas.Error](err); !ok || e.Code != schemas.CodeLimit || !strings.Contains(e.Hint, "NATS server more room") {
				t.Errorf("upload: got %v, want the limit and the way out", err)
			}
		}
		f.decider("order", one(`,"startToCloseTimeout":3600`))
		f.pull().success()
		f.completes("o")
	})
}
