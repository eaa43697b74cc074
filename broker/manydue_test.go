package broker_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
)

// Timers that are due together expire in as many records as they need.
func TestManyTimersAtOnce(t *testing.T) {
	virtuallyOn(t, embedded.Options{DontListen: true, MaxPayload: 128 << 10}, 1, func(t *testing.T, f *fleet) {
		const rounds, each = 8, 100
		f.decider("order", func(d *decisionTask) string {
			var all []string
			for _, e := range d.Events {
				if e.Type == "Signal" {
					for range each {
						id := rand.Text() + rand.Text() + rand.Text() + rand.Text() + rand.Text() + rand.Text() + rand.Text() + rand.Text()
						all = append(all, fmt.Sprintf(`{"type":"ScheduleTimer","attributes":{"timerId":"%s","startToFireTimeout":60}}`, id))
					}
				}
			}
			return "[" + strings.Join(all, ",") + "]"
		})
		a := f.node("a", nil)
		f.start(startO)
		for range rounds {
			f.publish("drover.default.signal.o.s", "")
			time.Sleep(time.Second)
		}
		a.stop()
		time.Sleep(2 * time.Minute)
		f.node("b", nil)
		time.Sleep(20 * time.Second)
		n := 0
		for _, r := range f.records(0) {
			for _, e := range r.Events {
				if e.Type() == "TimerExpired" {
					n++
				}
			}
		}
		if n != rounds*each {
			t.Fatalf("%d timers have expired, want %d", n, rounds*each)
		}
	})
}
