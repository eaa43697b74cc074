package broker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
)

// A server of NATS that is started again with a smaller max_payload gets no record and no answer that was gathered for the larger one.
func TestServerThatTakesLessThanBefore(t *testing.T) {
	o := embedded.Options{DontListen: true, StoreDir: t.TempDir(), MaxPayload: 1 << 20}
	virtuallyOn(t, o, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.start(startO)
		signals := func(n int) {
			for range n {
				if _, err := f.post.PublishSync(t.Context(), ns.Signal("o", "s"), nil, []byte(`"`+strings.Repeat("x", 40<<10)+`"`)); err != nil {
					t.Fatal(err)
				}
			}
		}
		signals(4)
		f.start(`{"workflowId":"large","type":"order","input":"` + strings.Repeat("x", 200<<10) + `"}`)
		time.Sleep(time.Second)
		full := len(f.events("o"))

		f.server.Load().Shutdown()
		o.MaxPayload = 128 << 10
		f.serve(o)
		signals(4)
		time.Sleep(3 * time.Second)
		if got := len(f.events("o")); got != full+4 {
			t.Errorf("got %d events, want the %d from before and 4 signals", got, full)
		}
		// What is there and fits no message any more can be read again with the larger one, and the answer says so.
		for _, verb := range []string{"history", "describe"} {
			if got := string(f.request("drover.default.api."+verb, `{"workflowId":"large"}`)); !strings.Contains(got, "raise the server's max_payload") {
				t.Errorf("%s: got %.300s, want the way out", verb, got)
			}
		}
	})
}
