package natsconn

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/internal/virtual"
)

// Only of a write that nobody has answered is it said that its outcome is unknown: a read has none.
func TestOnlyWritesHaveAnOutcome(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		if _, err := c.Subscribe("silent", "", func(Msg) {}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Subscribe("strange", "", func(m Msg) { _ = m.Respond(nil, []byte("what?")) }); err != nil {
			t.Fatal(err)
		}
		acks := make(chan Ack, 1)
		out := outbox(t, c, OutboxOptions{})
		send := func(subject string) error {
			out.Send(subject, nil, nil, func(a Ack) { acks <- a })
			return receive(t, acks).Err
		}
		sync := func(subject string) error {
			_, err := c.PublishSync(t.Context(), subject, nil, nil)
			return err
		}
		for _, tt := range []struct {
			name  string
			do    func(subject string) error
			on    string
			write bool
		}{
			{"request", func(s string) error { _, err := c.Request(t.Context(), s, nil, nil); return err }, "silent", false},
			{"publish", sync, "silent", true},
			{"publish, no acknowledgement", sync, "strange", true},
			{"outbox", send, "silent", true},
			{"outbox, no acknowledgement", send, "strange", true},
		} {
			err := tt.do(tt.on)
			wantErr(t, err, ErrTimeout)
			if says := strings.Count(err.Error(), "the outcome is unknown"); (says == 1) != tt.write || says > 1 {
				t.Errorf("%s: got %q, which says %d times that the outcome is unknown; is it a write: %v", tt.name, err, says, tt.write)
			}
		}
	})
}
