package broker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// An attempt goes on from what the one before has said, however large that is, if a record takes it: whether that one has failed, with words of
// its own, or was lost.
func TestAttemptGoesOnFromALargeHeartbeat(t *testing.T) { // S1-32
	for _, tc := range []struct {
		said, words int // KiB
		lost        bool
		want        int // KiB
	}{
		{said: 200, lost: true, want: 200},
		{said: 400, lost: true, want: 400},
		{said: 900, lost: true, want: 900},
		{said: 700, words: 1, want: 700},
		{said: 700, words: 250, want: 700},
		{said: 900, words: 250, want: 0}, // no record takes both
	} {
		t.Run(fmt.Sprintf("%+v", tc), func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				f.decider("order", one(`,"heartbeatTimeout":10,"retry":{"maximumAttempts":2,"initialInterval":1}`))
				f.start(startO)
				first := f.pull()
				first.report("started", "")
				time.Sleep(time.Second)
				f.request(first.Beat, `{"token":"`+first.Token+`","details":"`+strings.Repeat("x", tc.said<<10)+`"}`)
				if !tc.lost {
					first.report("failed", `,"reason":"no","details":"`+strings.Repeat("y", tc.words<<10)+`"`)
				}
				if err := first.msg.Ack(); err != nil {
					t.Fatal(err)
				}
				second := f.pull()
				if said, _ := second.HeartbeatDetails.(string); second.Attempt != 2 || len(said) != tc.want<<10 {
					t.Errorf("attempt %d goes on from %d bytes, want %d KiB", second.Attempt, len(said), tc.want)
				}
			})
		})
	}
}
