package natsconn

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/internal/cutwire"

	"github.com/droverhq/drover/internal/virtual"
)

// The wire loses, delays or doubles one message of a group, or its answer. Every message gets one outcome, what is acknowledged is
// stored where it was predicted, nothing is stored twice, and what was refused is not stored.
func TestGroupOnABadWire(t *testing.T) {
	for name, bad := range map[string]cutwire.Verdict{
		"lost": cutwire.Swallow, "late": cutwire.Late, "doubled": cutwire.Twice, "answer lost": cutwire.Unanswered,
	} {
		for _, at := range []int{1, 2, 5, 8, 9, 10} { // the first goes alone, 2 to 7 as a batch, and the others one by one
			t.Run(name+" "+strconv.Itoa(at), func(t *testing.T) {
				virtual.Run(t, func(t *testing.T) {
					srv, stop := start(t, serverOptions(t))
					t.Cleanup(stop)
					stream(t, dial(t, Options{InProcess: srv}), batches)
					wire := cutwire.New(srv)
					c := dial(t, Options{InProcess: wire})
					done := false
					wire.Judge(func(subject string, _ []byte) cutwire.Verdict {
						if subject == "s."+strconv.Itoa(at) && !done {
							done = true
							return bad
						}
						return cutwire.Pass
					})
					w := newWriter(t, c, OutboxOptions{Group: 9, Timeout: 10 * time.Second})
					w.send(7, 100)
					synctest.Wait()
					w.send(3, 100)
					time.Sleep(time.Minute)
					if len(w.acks) != 10 {
						t.Fatalf("got %d outcomes, want 10", len(w.acks))
					}
					subjects := map[string]uint64{}
					good, unknown := 0, 0
					for range 10 { // in the order of the answers: one that is lost comes last
						a := <-w.acks
						switch {
						case a.Err == nil && a.Seq == a.n:
							good++
						case errors.Is(a.Err, ErrTimeout):
							unknown++
						case !errors.Is(a.Err, ErrWrongSequence):
							t.Fatalf("message %d: got %+v", a.n, a.Ack)
						}
					}
					s, err := c.JetStream().Stream(t.Context(), "S")
					if err != nil {
						t.Fatal(err)
					}
					n := int(s.CachedInfo().State.Msgs)
					if n < good || n > good+unknown {
						t.Fatalf("got %d messages stored, want from %d to %d", n, good, good+unknown)
					}
					for seq := range uint64(n) {
						m, err := s.GetMsg(t.Context(), seq+1)
						if err != nil {
							t.Fatal(err)
						}
						if subjects[m.Subject]++; subjects[m.Subject] > 1 {
							t.Fatalf("%s is stored twice", m.Subject)
						}
					}
				})
			})
		}
	}
}

// A message that waits after one without an answer has its outcome when its own time is over. It is not sent after that: its writer has been told
// that nobody knows, and looks.
func TestGroupSendsNothingThatIsLate(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		srv, stop := start(t, serverOptions(t))
		t.Cleanup(stop)
		stream(t, dial(t, Options{InProcess: srv}), batches)
		wire := cutwire.New(srv)
		c := dial(t, Options{InProcess: wire})
		lost := false
		wire.Judge(func(subject string, _ []byte) cutwire.Verdict {
			if subject == "s.1" && !lost {
				lost = true
				return cutwire.Swallow
			}
			return cutwire.Pass
		})
		w := newWriter(t, c, OutboxOptions{Group: 9, Timeout: 10 * time.Second})
		w.send(1, 100)
		w.next = 0 // the same again, which would be stored
		w.send(1, 100)
		time.Sleep(time.Minute)
		for range 2 {
			if a := <-w.acks; !errors.Is(a.Err, ErrTimeout) {
				t.Errorf("message %d: got %+v, want a timeout", a.n, a.Ack)
			}
		}
		if last, err := c.StreamLastSeq(t.Context(), "S"); err != nil || last != 0 {
			t.Errorf("%d messages are stored after their outcome, %v", last, err)
		}
	})
}
