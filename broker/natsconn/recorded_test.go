package natsconn

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/internal/virtual"
)

// A stream that somebody has made on a subject of requests acknowledges them, before anybody answers. That is no answer.
func TestRequestsThatAStreamTakes(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		if _, err := c.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "REC", Subjects: []string{"q.*"}, Storage: jetstream.MemoryStorage, MaxMsgs: 1, Discard: jetstream.DiscardNew}); err != nil {
			t.Fatal(err)
		}
		sub, err := c.Subscribe("q.a", "", func(m Msg) {
			time.Sleep(time.Second)
			if err := m.Respond(nil, []byte(`{"stream":"x","consumer":"y"}`)); err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = sub.Close() }()
		for _, stream := range []string{"stores it", "is full"} {
			if m, err := c.Request(t.Context(), "q.a", nil, nil); err != nil || string(m.Data) != `{"stream":"x","consumer":"y"}` {
				t.Errorf("where the stream %s: got %s (%v), want what was answered", stream, m.Data, err)
			}
			m, err := c.RequestAny(t.Context(), "q.a", nil, nil)
			if name, ok := m.FromStream(); err != nil || name != "REC" || !ok {
				t.Errorf("where the stream %s: got %s (%v), want its word", stream, m.Data, err)
			}
		}
		if m, err := c.Request(t.Context(), "q.nobody", nil, nil); !errors.Is(err, ErrTimeout) {
			t.Errorf("got %s (%v) where only the stream listens, want ErrTimeout", m.Data, err)
		}
	})
}
