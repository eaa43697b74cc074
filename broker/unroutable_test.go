package broker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/schemas"
)

// NATS stores what is published to a subject with a wildcard in the place of an id, and puts no partition into it: no owner reads
// such a signal among its own. It was acknowledged all the same, and so it ends where everything does that cannot be applied.
func TestSignalsWithAWildcardForAnID(t *testing.T) { // P-12
	virtually(t, 2, func(t *testing.T, f *fleet) {
		unroutable := []string{"drover.default.signal.o.*", "drover.default.signal.o.>", "drover.default.signal.*.s", "drover.default.signal.*.>"}
		publish := func(subj string) {
			t.Helper()
			m := &nats.Msg{Subject: subj, Data: []byte(subj)}
			if _, err := f.js.PublishMsg(t.Context(), m); err != nil {
				t.Fatalf("publish %s: %v", subj, err)
			}
		}
		wantLetters := func(n int) {
			t.Helper()
			time.Sleep(2 * time.Minute)
			var got []string
			for _, l := range f.letters() {
				if l.Reason != "undecodable" || l.Subject != string(l.Body) || !strings.Contains(l.Details, "%2A") {
					t.Errorf("letter %s about %s, with the body %s, says %q", l.Reason, l.Subject, l.Body, l.Details)
				}
				got = append(got, l.Subject)
			}
			if want := strings.Join(append(unroutable, unroutable...)[:n], " "); strings.Join(got, " ") != want {
				t.Fatalf("got letters about %v, want %s", got, want)
			}
			if _, err := f.post.NextBySubject(t.Context(), ns.StreamSignals(), ns.Unroutable(), 1); err == nil {
				t.Error("a signal that is in the dead letters is in the stream still")
			}
		}
		for _, subj := range unroutable {
			publish(subj)
		}
		f.start0("o", "order", "r1")
		first := f.node("a", nil)
		f.decider("order", signaled)
		f.await("o", schemas.EventDeciderCompleted)
		time.Sleep(time.Minute)
		f.letters()
		for _, subj := range unroutable {
			publish(subj)
		}
		first.stop()
		f.node("b", nil)
		wantLetters(2 * len(unroutable))
		publish("drover.default.signal.o.s")
		f.completes("o")
	})
}
