package broker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// The NATS server ends the connection of whoever publishes to a subject that is longer than a line of its protocol may be. What a worker says, as where
// it wants to be answered and what it is called, ends no connection of the broker, which would be served no more.
func TestLongSubjectsEndNoConnection(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for name, more := range map[string]string{
		"reply":    `,"taskSequence":%d,"nonce":"n","replyTo":"` + long + `"`,
		"identity": `,"taskSequence":%d,"nonce":"n","replyTo":"x","identity":"` + long + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				f.decider("order", one(`,"notIdempotent":true`))
				f.start(startO)
				k := f.pull()
				k.report("begin", fmt.Sprintf(more, k.sequence))
				time.Sleep(time.Second)
				f.api("terminate", `{"workflowId":"o"}`)
				time.Sleep(time.Second)
				k.success()
				time.Sleep(time.Second)
				if a := f.api("describe", `{"workflowId":"o"}`); a["error"] != nil {
					t.Fatalf("got %v", a)
				}
				f.start(`{"workflowId":"o2","type":"order","requestId":"q2"}`)
			})
		})
	}
}
