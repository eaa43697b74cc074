//go:build unix

package index_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/ops/index"
	"github.com/droverhq/drover/ops/query"
	"github.com/droverhq/drover/schemas"
)

const million = 1_000_000

var now = time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)

// generate calls fn with rows that have begun in the last 30 days, in about this order; every other
// one twice, the second time closed.
func generate(n int, fn func(r *query.Row)) {
	rnd := rand.New(rand.NewPCG(1, 48))
	types, regions := make([]string, 20), []string{"eu", "us", "asia", "africa", "latam"}
	for i := range types {
		types[i] = fmt.Sprint("type-", i)
	}
	closes := []schemas.Status{
		"completed",
		"completed",
		"completed",
		"failed",
		"canceled",
		"timedOut",
	}
	step := 30 * 24 * time.Hour / time.Duration(n)
	var id ulid.ULID
	for i := range n {
		started := now.Add(-time.Duration(n-i)*step - rand.N(time.Minute))
		_ = id.SetTime(ulid.Timestamp(started))
		for b := 6; b < 16; b++ {
			id[b] = byte(rnd.Uint32())
		}
		r := query.Row{
			WorkflowID: fmt.Sprintf("order-%08d", rnd.IntN(100_000_000)), Run: id.String(),
			Type: types[rnd.IntN(20)], Status: "open", Started: schemas.At(started), Events: 3,
			Tags: []string{"batch"}, StartMode: "Manual", Sequence: uint64(2 * i),
			Attributes: map[string]string{
				"customer": fmt.Sprint(
					"customer-",
					rnd.IntN(50_000),
				), "region": regions[rnd.IntN(5)],
				"priority": fmt.Sprint(rnd.IntN(10)), "key": fmt.Sprint("k", i*7919%million),
			},
		}
		fn(&r)
		if i%2 == 0 {
			r.Status, r.Events, r.Sequence = closes[rnd.IntN(len(closes))], 17, uint64(2*i+1)
			r.Closed = r.Started + schemas.Timestamp(rnd.Int64N(int64(time.Hour)))
			if r.Status == "failed" {
				r.Reason = fmt.Sprint("card declined: code ", rnd.IntN(30))
			}
			fn(&r)
		}
	}
}

// cpu is how much CPU time the process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// used is how many milliseconds of CPU time were used since then, by each round.
func used(b *testing.B, since time.Duration) float64 {
	return float64((cpu(b) - since).Microseconds()) / 1000 / float64(b.N)
}

// full is a store with a million rows.
var full = sync.OnceValue(func() *index.Store {
	s := index.New(0)
	generate(million, func(r *query.Row) { s.Put(r) })
	return s
})

var queries = []struct{ name, text string }{
	{"1 count by status", "GROUP BY status"},
	{"2 open of a type", "type = 'type-3' AND status = open LIMIT 50"},
	{"3 failed in a day", "status = failed AND started > now-24h LIMIT 50"},
	{"4 count of type, status, day", "type = 'type-3' AND status = failed AND started > now-24h"},
	{"5 of a customer", "customer = 'customer-4711' LIMIT 50"},
	{"6 id prefix", "id STARTS_WITH 'order-4711' LIMIT 50"},
	{"7 closed in an hour by type", "closed > now-1h GROUP BY type"},
	{
		"8 several",
		"type IN ('type-1','type-2','type-3') AND status != completed AND region = 'eu' AND " +
			"priority > 3 AND started > now-24h LIMIT 50",
	},
	{
		"9 count of 8 over all time",
		"type IN ('type-1','type-2','type-3') AND status != completed AND " +
			"region = 'eu' AND priority > 3",
	},
	{"10 id contains", "id CONTAINS '4711' LIMIT 50"},
	{"11 a unique attribute", "key = 'k123456'"},
	{"12 failed by region", "status = failed GROUP BY region"},
	{"13 run", "run = '01M8997E5WP7J0VWH2ADHNDCXP'"},
	{"14 by a number", "ORDER BY priority DESC LIMIT 50"},
}

// The queries of which the median shall be at most 50 ms at a million rows.
func BenchmarkQueries(b *testing.B) {
	stores := []*index.Store{full()}
	for _, q := range queries {
		b.Run(q.name, func(b *testing.B) {
			parsed, err := query.Parse(q.text, now)
			if err != nil {
				b.Fatal(err)
			}
			found, start := 0, cpu(b)
			for b.Loop() {
				switch {
				case len(parsed.Group) > 0:
					var all index.Totals
					_, all, err = index.Groups(stores, parsed)
					found = all.Groups
				case parsed.Limit == 0:
					found = index.Count(stores, parsed)
				default:
					var page index.Page
					page, err = index.Search(stores, parsed, "")
					found = len(page.Rows)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(found), "found")
			b.ReportMetric(used(b, start), "cpu-ms")
		})
	}
}

// What a run costs: it is put, and every other one is put again.
func BenchmarkPut(b *testing.B) {
	var rows []query.Row
	generate(200_000, func(r *query.Row) { rows = append(rows, *r) })
	b.ResetTimer()
	start := cpu(b)
	var s *index.Store
	for b.Loop() {
		s = index.New(0)
		for i := range rows {
			s.Put(&rows[i])
		}
	}
	b.ReportMetric(used(b, start)*1e6/200_000, "cpu-ns/run")
	runtime.KeepAlive(s)
}

func BenchmarkMemory(b *testing.B) {
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	for b.Loop() {
		before := heap()
		s := index.New(0)
		generate(million, func(r *query.Row) { s.Put(r) })
		b.ReportMetric((heap()-before)/million, "B/row")
		b.ReportMetric(float64(s.Bytes())/million, "estimated-B/row")
	}
}

func BenchmarkSnapshot(b *testing.B) {
	s := full()
	b.Run("write", func(b *testing.B) {
		start := cpu(b)
		for b.Loop() {
			if err := s.Write(io.Discard, index.Mark{}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(used(b, start), "cpu-ms")
	})
	var all bytes.Buffer
	if err := s.Write(&all, index.Mark{}); err != nil {
		b.Fatal(err)
	}
	b.Run("read", func(b *testing.B) {
		start := cpu(b)
		for b.Loop() {
			if _, _, err := index.Read(bytes.NewReader(all.Bytes())); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(used(b, start), "cpu-ms")
		b.ReportMetric(float64(all.Len())/million, "bytes/row")
	})
}
