package activity_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/post"
)

// BenchmarkWorker measures a task that does nothing: pulled, run, reported, acknowledged, on a server in memory.
func BenchmarkWorker(b *testing.B) {
	s, err := embedded.Start(b.Context(), embedded.Options{DontListen: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Shutdown)
	conn, err := post.Dial(b.Context(), post.Options{InProcess: s.Conn()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(conn.Close)
	for _, cfg := range []jetstream.StreamConfig{
		{Name: ns.StreamIn(0), Subjects: []string{ns.AllIn(0)}},
		{Name: ns.StreamTasks("PCI"), Subjects: []string{ns.AllTasks("PCI")}, Retention: jetstream.WorkQueuePolicy},
	} {
		cfg.Storage = jetstream.MemoryStorage
		if _, err := conn.JetStream().CreateStream(b.Context(), cfg); err != nil {
			b.Fatal(err)
		}
	}
	_, err = conn.JetStream().CreateConsumer(b.Context(), ns.StreamTasks("PCI"), jetstream.ConsumerConfig{
		Durable: activity.Consumer, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxAckPending: -1,
	})
	if err != nil {
		b.Fatal(err)
	}
	reports := make(chan struct{}, b.N)
	reader, err := conn.Read(b.Context(), ns.StreamIn(0), post.ReadOptions{HeadersOnly: true}, func(post.Stored) { reports <- struct{}{} })
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { reader.Close(); <-reader.Done() })
	outbox, err := conn.NewOutbox(post.OutboxOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(outbox.Close)
	work, err := post.Dial(b.Context(), post.Options{InProcess: s.Conn()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(work.Close)
	w := activity.New(work, &activity.Options{Lists: []string{"PCI"}})
	activity.Register(w, "work", func(_ context.Context, n int) (int, error) { return n, nil })
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t := task()
	t.Input = []byte("42")
	body, err := json.Marshal(t)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if outbox.Send(ns.Task("PCI", 0), nil, body, nil); i >= 1000 {
			<-reports // at most 1,000 are on their way
		}
	}
	for range min(b.N, 1000) {
		<-reports
	}
	b.StopTimer()
	stop()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}
