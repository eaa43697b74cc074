package timers_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// BenchmarkLateness tells how late rings are stored, in real time, while 100,000 other alarms wait: two come due each
// millisecond.
func BenchmarkLateness(b *testing.B) {
	const waiting = 100_000
	r := newRig(b)
	outbox, err := r.conn.NewOutbox(natsconn.OutboxOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer outbox.Close()
	arm := func(wid string, due time.Time) {
		body, err := schemas.Marshal(&schemas.Alarm{Run: "RUN", Due: schemas.At(due)})
		if err != nil {
			b.Fatal(err)
		}
		outbox.Send(ns.Alarm(0, wid, "RUN"), nil, body, nil)
	}
	for i := range waiting {
		if arm(fmt.Sprintf("far%d", i), time.Now().Add(24*time.Hour+time.Duration(i*7919%waiting)*time.Millisecond)); i%1000 == 0 {
			if err := r.conn.Flush(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	r.pending(waiting)
	w, _ := r.worker("n1")
	stop := r.start(w)
	arm("first", time.Now())
	r.next() // the worker has read them all
	b.ResetTimer()
	base := time.Now().Add(time.Second)
	for i := range b.N {
		arm(fmt.Sprintf("near%d", i), base.Add(time.Duration(i)*time.Millisecond/2))
	}
	late := make([]time.Duration, 0, b.N)
	for range b.N {
		got := r.next()
		late = append(late, got.at.Sub(got.Due.Time()))
	}
	b.StopTimer()
	slices.Sort(late)
	if late[0] < 0 {
		b.Fatalf("got a ring %v early, want none", -late[0])
	}
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(late[(len(late)-1)*p/100])/1e6, fmt.Sprintf("p%d-late-ms", p))
	}
	b.ReportMetric(float64(late[len(late)-1])/1e6, "max-late-ms")
	if err := stop(); err != nil {
		b.Fatal(err)
	}
}
