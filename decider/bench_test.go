package decider_test

import (
	"context"
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// BenchmarkWorker is the cost of a task from the broker's request to its reply, server included. "read" reads the whole
// history out of the cache.
func BenchmarkWorker(b *testing.B) {
	all := long(20, 14, 20)
	for name, decide := range map[string]decider.Func{
		"nothing": nothing,
		"read": func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
			_, err := task.View(ctx)
			return nil, err
		},
	} {
		b.Run(name, func(b *testing.B) {
			server, err := embedded.Start(b.Context(), embedded.Options{DontListen: true})
			if err != nil {
				b.Fatal(err)
			}
			defer server.Shutdown()
			conn, err := natsconn.Dial(b.Context(), natsconn.Options{InProcess: server.Conn()})
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			announced, replies := make(chan natsconn.Msg, 1), make(chan natsconn.Msg, 1024)
			for subj, ch := range map[string]chan natsconn.Msg{ns.Announce("order"): announced, "replies": replies} {
				if _, err := conn.Subscribe(subj, "", func(m natsconn.Msg) { ch <- m }); err != nil {
					b.Fatal(err)
				}
			}
			w := decider.New(conn, nil)
			w.Register("order", decide)
			ctx, stop := context.WithCancel(b.Context())
			done := make(chan error, 1)
			go func() { done <- w.Run(ctx) }()
			<-announced
			body, err := schemas.MarshalJSON(window(all[:14], 0))
			if err != nil {
				b.Fatal(err)
			}
			ask := func(to string, body []byte) {
				if err := conn.PublishReply(to, "replies", nil, body); err != nil {
					b.Fatal(err)
				}
			}
			ask(ns.Decide("order"), body)
			first := <-replies
			r := &reply{body: first.Data}
			if err := schemas.Unmarshal(first.Data, &r.DecisionReply); err != nil {
				b.Fatal(err)
			}
			task := window(all, 14)
			task.Base = r.base(15)
			if body, err = schemas.Marshal(task); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			sent := 0
			for got := 0; got < b.N; got++ {
				for ; sent < b.N && sent-got < 256; sent++ {
					ask(ns.DecideSticky("order", r.Sticky), body)
				}
				<-replies
			}
			b.StopTimer()
			stop()
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		})
	}
}
