package activity_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
)

// BenchmarkWorker measures a task that does nothing: pulled, run, reported, acknowledged, on a server in memory.
func BenchmarkWorker(b *testing.B) {
	s := embeddedtest.Serve(b, embedded.Options{DontListen: true})
	conn := embeddedtest.Connect(b, s)
	if _, err := topology.Ensure(b.Context(), conn, topology.Options{Partitions: 1, Memory: true}); err != nil {
		b.Fatal(err)
	}
	if err := topology.EnsureList(b.Context(), conn, ns, "PCI", topology.ListOptions{}); err != nil {
		b.Fatal(err)
	}
	reports := make(chan struct{}, b.N)
	headers := natsconn.ReadOptions{HeadersOnly: true}
	reader, err := conn.Read(b.Context(), ns.StreamIn(0), headers, func(natsconn.Stored) {
		reports <- struct{}{}
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { reader.Close(); <-reader.Done() })
	outbox, err := conn.NewOutbox(natsconn.OutboxOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(outbox.Close)
	work := embeddedtest.Connect(b, s)
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
