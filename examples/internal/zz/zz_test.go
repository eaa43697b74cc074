package zz

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/examples/internal/fleet"
	"github.com/droverhq/drover/schemas"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestRuns(t *testing.T) {
	url := fleet.Start(t)
	ctx := t.Context()
	c := must(drover.Connect(ctx, &drover.Options{URL: url}))
	defer c.Close()
	w := c.Deciders(nil)
	w.Register("empty", decider.Func(func(context.Context, *decider.Task) ([]schemas.Decision, error) {
		return []schemas.Decision{decider.Complete(nil)}, nil
	}))
	w.Register("timer", decider.Func(func(context.Context, *decider.Task) ([]schemas.Decision, error) {
		return []schemas.Decision{decider.Timer("t", time.Hour)}, nil
	}))
	dctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { w.Run(dctx) })
	defer wg.Wait()
	defer cancel()
	nc := must(nats.Connect(url))
	defer nc.Close()
	js := must(jetstream.New(nc))
	count := func(prefix string) (n uint64) {
		for i := range 4 {
			s := must(js.Stream(ctx, fmt.Sprintf("drover-default-%s-%d", prefix, i)))
			n += s.CachedInfo().State.LastSeq
		}
		return n
	}
	start := func(typ string, n int) time.Duration {
		began := time.Now()
		sem := make(chan struct{}, 64)
		var wg sync.WaitGroup
		for i := range n {
			sem <- struct{}{}
			wg.Go(func() {
				defer func() { <-sem }()
				r := must(c.Start(ctx, typ, nil, &drover.StartOptions{ID: fmt.Sprintf("%s-%d", typ, i)}))
				if typ == "empty" {
					if err := r.Result(ctx, nil); err != nil {
						panic(err)
					}
				}
			})
		}
		wg.Wait()
		return time.Since(began)
	}
	h0, a0, in0 := count("history"), count("alarms"), count("in")
	const N = 20000
	took := start("empty", N)
	fmt.Printf("empty runs: %d in %v; messages: history %d alarms %d in %d\n", N, took, count("history")-h0, count("alarms")-a0, count("in")-in0)
	for range 3 {
		began := time.Now()
		n := 0
		for _, err := range c.List(ctx, drover.ListOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		fmt.Printf("list all: %d in %v\n", n, time.Since(began))
		began = time.Now()
		n = 0
		for _, err := range c.List(ctx, drover.ListOptions{Limit: 100}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		fmt.Printf("list first 100: %d in %v\n", n, time.Since(began))
		began = time.Now()
		n = 0
		for _, err := range c.List(ctx, drover.ListOptions{WorkflowID: "empty-777"}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		fmt.Printf("list one id: %d in %v\n", n, time.Since(began))
	}
	// base of timers
	start("timer", 2000)
	time.Sleep(300 * time.Millisecond)
	var diffs []time.Duration
	for i := range 2000 {
		id := fmt.Sprintf("timer-%d", i)
		d := must(c.Run(id, "").Describe(ctx))
		if len(d.Timers) == 0 {
			continue
		}
		base := d.Timers[0].Due.Add(-schemas.Seconds(3600))
		p := subject.Partition(id, 4)
		s := must(js.Stream(ctx, fmt.Sprintf("drover-default-history-%d", p)))
		m := must(s.GetLastMsgForSubject(ctx, fmt.Sprintf("drover.default.history.%d.%s.*", p, id)))
		diffs = append(diffs, base.Sub(schemas.At(m.Time)))
	}
	slices.Sort(diffs)
	fmt.Printf("base - stamp: n %d min %v p1 %v p50 %v p99 %v max %v\n", len(diffs), diffs[0], diffs[len(diffs)/100], diffs[len(diffs)/2], diffs[len(diffs)*99/100], diffs[len(diffs)-1])
	fmt.Printf("alarms right after: %d\n", count("alarms")-a0)
	time.Sleep(1500 * time.Millisecond)
	fmt.Printf("alarms 1.5 s later: %d\n", count("alarms")-a0)
}

func TestMarker(t *testing.T) {
	url := fleet.Start(t)
	nc := must(nats.Connect(url))
	defer nc.Close()
	in := nc.NewInbox()
	got := make(chan struct{}, 1)
	must(nc.Subscribe(in, func(m *nats.Msg) { got <- struct{}{} }))
	nc.Flush()
	var ds []time.Duration
	for range 5000 {
		b := time.Now()
		nc.Publish(in, nil)
		nc.FlushTimeout(time.Second)
		<-got
		ds = append(ds, time.Since(b))
	}
	slices.Sort(ds)
	fmt.Printf("marker (TCP, flushed): p50 %v p99 %v\n", ds[len(ds)/2], ds[len(ds)*99/100])
}

func TestExpect(t *testing.T) {
	for _, prof := range []embedded.Profile{embedded.ProfileDev, embedded.ProfileSingle} {
		srv := must(embedded.Start(t.Context(), embedded.Options{StoreDir: t.TempDir(), Profile: prof, Port: -1}))
		nc := must(nats.Connect(srv.ClientURL()))
		js := must(jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(30000)))
		ctx := context.Background()
		body := make([]byte, 400)
		n := 20000
		if prof == embedded.ProfileSingle && true {
			n = 4000
		}
		for _, mode := range []string{"stream", "subject-64", "subject-1"} {
			must(js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, AllowDirect: true}))
			began := time.Now()
			switch mode {
			case "stream":
				var acks []jetstream.PubAckFuture
				for i := range n {
					m := nats.NewMsg(fmt.Sprintf("s.%d", i%64))
					m.Data = body
					m.Header.Set("Nats-Expected-Last-Sequence", fmt.Sprint(i))
					acks = append(acks, must(js.PublishMsgAsync(m)))
				}
				<-js.PublishAsyncComplete()
				for _, a := range acks {
					select {
					case <-a.Ok():
					case err := <-a.Err():
						t.Fatal(err)
					}
				}
			default:
				k := 64
				if mode == "subject-1" {
					k = 1
				}
				var wg sync.WaitGroup
				for s := range k {
					wg.Go(func() {
						last := uint64(0)
						for range n / k {
							m := nats.NewMsg(fmt.Sprintf("s.%d", s))
							m.Data = body
							m.Header.Set("Nats-Expected-Last-Subject-Sequence", fmt.Sprint(last))
							last = must(js.PublishMsg(ctx, m)).Sequence
						}
					})
				}
				wg.Wait()
			}
			took := time.Since(began)
			fmt.Printf("%v %s: %.0f/s\n", prof, mode, float64(n)/took.Seconds())
			js.DeleteStream(ctx, "S")
		}
		nc.Close()
		srv.Shutdown()
	}
}

func TestSizes(t *testing.T) {
	for _, n := range []int{3, 8, 100} {
		task := &schemas.DecisionTask{V: 1, Namespace: "default", WorkflowID: "order-17", Run: "01JABCDEFGHJKMNPQRSTVWXYZ0", Type: "order", PreviousStartedID: 3, StartedID: int64(3 + n), Token: "01JABCDEFGHJKMNPQRSTVWXYZ0.11.1.1", Attempt: 1, Context: schemas.Payload(`{"step":"hash","next":12}`)}
		for i := range n {
			task.Events = append(task.Events, schemas.Event{ID: int64(4 + i), Time: schemas.At(time.Now()), Attributes: &schemas.ActivitySuccess{ScheduledEventID: 5, StartedEventID: 7, Result: schemas.Payload(`{"receipt":"ABC-123","amount":12}`)}})
		}
		a, b := must(schemas.MarshalJSON(task)), must(schemas.Marshal(task))
		bench := func(f func()) time.Duration {
			began := time.Now()
			for range 20000 / n {
				f()
			}
			return time.Since(began) / time.Duration(20000/n)
		}
		fmt.Printf("%d events: json %d B enc %v dec %v; msgpack %d B enc %v dec %v\n", n, len(a),
			bench(func() { must(schemas.MarshalJSON(task)) }), bench(func() { var x schemas.DecisionTask; if err := schemas.Unmarshal(a, &x); err != nil { panic(err) } }),
			len(b), bench(func() { must(schemas.Marshal(task)) }), bench(func() { var x schemas.DecisionTask; if err := schemas.Unmarshal(b, &x); err != nil { panic(err) } }))
	}
	_ = json.Marshal
}
