package timers_test

import (
	"testing"
	"time"

	"github.com/droverhq/drover/internal/cutwire"
)

// What a network makes of a ring, of the deletion of its alarm and of the renewal of the claim, while the connection lives.
// The owner sees the ring at least once, never early, and the alarm goes.
func TestUnluckyNetwork(t *testing.T) { // P-10, P-15, I8
	for _, tc := range []fault{
		{"acknowledgement of the ring lost", "drover.default.in.", cutwire.Unanswered, 2, 11 * time.Second},
		{"ring doubled", "drover.default.in.", cutwire.Twice, 2, time.Second},
		{"ring late", "drover.default.in.", cutwire.Late, 2, 11 * time.Second},
		{"answer to the deletion lost", deleteAPI, cutwire.Unanswered, 1, time.Second},
		{"deletion doubled", deleteAPI, cutwire.Twice, 1, time.Second},
		{"deletion late", deleteAPI, cutwire.Late, 1, time.Second},
		{"answer to the claim lost", "$KV.", cutwire.Unanswered, 1, claimTTL + time.Second},
		{"claim doubled", "$KV.", cutwire.Twice, 1, time.Second},
		{"claim late", "$KV.", cutwire.Late, 1, claimTTL + time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(_ *testing.T, r *rig) { r.firesDespite(tc, 2*time.Minute) })
		})
	}
}
