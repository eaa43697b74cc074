package metrics

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"github.com/droverhq/drover/broker/stats"
	"github.com/droverhq/drover/ops/audit"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

var update = flag.Bool("update", false, "write testdata anew")

// Names, types, labels and help are what dashboards and alerts rest on: names are append-only.
func TestGolden(t *testing.T) {
	var b strings.Builder
	for _, m := range Table() {
		fmt.Fprintf(&b, "%s %s {%s} %s\n", m.Name, m.Kind, strings.Join(m.Labels, ","), m.Help)
	}
	const file = "testdata/metrics.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("got\n%s\nwant what %s has; write it with -update", b.String(), file)
	}
}

// full is a set in which each metric of the roles has a value, with some types of workflows.
func full(types int) *Set {
	s := New("v1.2.3", os.TempDir())
	n := s.Namespace("default")
	c := n.Stats()
	for i := range types {
		typ := c.Types.Of(fmt.Sprint("type", i))
		typ.Started.Add(1)
		typ.Took.Observe(time.Duration(i+1) * time.Millisecond)
		typ.Wait.Observe(time.Millisecond)
		a := c.Activities.Of(stats.ListType{List: fmt.Sprint("list", i%10), Type: fmt.Sprint("act", i)})
		a.Wait.Observe(time.Second)
	}
	c.Buried("unknown-workflow", true)
	c.Asked("_INBOX.1", "start")
	c.Answered("_INBOX.1", &schemas.StartResponse{})
	p, _ := c.Own(3)
	p.InboxSince.Store(time.Now().Add(-time.Minute).UnixNano())
	c.Ring(3, func() int { return 5 })
	n.Roles(4, nil, func() bool { return true })
	n.Purged(3)
	fill(n, 1)
	return s
}

// fill gives it what a master reads, of as many lists, schedules and always-on workflows.
func fill(n *Namespace, many int) {
	r := readings{locks: &[2]int{2, 1}, nodes: map[schemas.NodeStatus]int{schemas.NodeReady: 3}}
	for i := range many {
		r.lists = append(r.lists, schemas.TaskListInfo{
			List: fmt.Sprintf("list%05d", i), Pending: 2, Working: 1, Workers: 4,
			OldestAt: schemas.At(time.Now().Add(-time.Duration(i) * time.Second)),
		})
		r.dead = append(r.dead, schemas.DeadCount{Reason: fmt.Sprintf("reason%05d", i), Count: 3})
		l := ops.ScheduleLine{Schedule: ops.Schedule{ID: fmt.Sprintf("nightly%05d", i)}}
		l.Counts.Missed = 1
		r.schedules = append(r.schedules, l)
		r.alwaysOn = append(r.alwaysOn, alwaysOn{id: fmt.Sprintf("daemon%05d", i), up: float64(i % 2)})
		r.open = append(r.open, openType{fmt.Sprintf("type%05d", i), 5})
	}
	r.lag = new(int64)
	n.read = r
	n.Index(func() IndexStats { return IndexStats{Rows: 7, Bytes: 900} })
	n.Audited(&audit.Report{Paused: map[schemas.Cause]int{schemas.CauseOperatorInitiated: 2}},
		map[audit.Standing]int{{Kind: audit.KindParked, Severity: audit.Warning}: 2})
}

// sum adds the values of a metric, and tells that of the others.
func sum(f *dto.MetricFamily) (all, others float64) {
	for _, m := range f.GetMetric() {
		v := m.GetGauge().GetValue() + m.GetCounter().GetValue()
		all += v
		for _, l := range m.GetLabel() {
			if l.GetValue() == "other" {
				others += v
			}
		}
	}
	return all, others
}

// What a master reads is bounded, too: nothing of it gets lost.
func TestReadingsAreBounded(t *testing.T) {
	s := New("", "")
	fill(s.Namespace("default"), 300)
	by := gather(t, s)
	for name, want := range map[string]struct {
		series      int
		all, others float64
	}{
		"drover_list_backlog":         {201, 600, 200},
		"drover_list_workers_waiting": {201, 1200, 400},
		"drover_dead_letters_stored":  {201, 900, 300},
		"drover_schedule_slots_total": {201 * 6, 300, 100},
		"drover_always_on_up":         {201, 100, 0},
		"drover_runs_open":            {201, 1500, 500},
	} {
		all, others := sum(by[name])
		if got := len(by[name].GetMetric()); got != want.series || all != want.all || others != want.others {
			t.Errorf("%s: got %d series, %v in all, %v of others; want %v", name, got, all, others, want)
		}
	}
	oldest := 0.0
	for _, m := range by["drover_list_oldest_seconds"].GetMetric() {
		oldest = max(oldest, m.GetGauge().GetValue())
	}
	if oldest < 299 {
		t.Errorf("the oldest task of the others is %v s old, want that of the last list", oldest)
	}
}

// A cheap audit says nothing of paused runs: those of the last full one stand.
func TestCheapAudit(t *testing.T) {
	s := New("", "")
	n := s.Namespace("default")
	fill(n, 1)
	n.Audited(&audit.Report{}, nil)
	by := gather(t, s)
	if all, _ := sum(by["drover_runs_paused"]); all != 2 || by["drover_audit_findings"] != nil {
		t.Errorf("got %v paused runs and findings %v", all, by["drover_audit_findings"])
	}
}

func gather(t testing.TB, s *Set) map[string]*dto.MetricFamily {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(s)
	all, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]*dto.MetricFamily{}
	for _, f := range all {
		by[f.GetName()] = f
	}
	return by
}

// Each metric of the table is shown, and with the labels that the table says.
func TestAllAreShown(t *testing.T) {
	by := gather(t, full(3))
	for _, m := range Table() {
		f := by[m.Name]
		switch {
		case m.Name == "drover_claims_held": // those of real claims; the server's tests see them
			continue
		case f == nil:
			t.Errorf("%s is not shown", m.Name)
			continue
		case strings.ToLower(f.GetType().String()) != string(m.Kind) || f.GetHelp() != m.Help:
			t.Errorf("%s: got a %v: %s", m.Name, f.GetType(), f.GetHelp())
		}
		has := map[string]bool{}
		for _, l := range f.GetMetric()[0].GetLabel() {
			has[l.GetName()] = true
		}
		for _, l := range m.Labels {
			if !has[l] {
				t.Errorf("%s: no label %s in %v", m.Name, l, f.GetMetric()[0])
			}
		}
	}
	if len(by) > len(Table()) {
		t.Errorf("got %d metrics, the table has %d", len(by), len(Table()))
	}
}

func TestLint(t *testing.T) {
	var all []*dto.MetricFamily
	for _, f := range gather(t, full(1)) {
		all = append(all, f)
	}
	problems, err := promlint.NewWithMetricFamilies(all).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// However many types users have, a namespace shows 200 and the others together.
func TestBounded(t *testing.T) {
	by := gather(t, full(10_000))
	for _, name := range []string{"drover_runs_started_total", "drover_run_duration_seconds"} {
		if got := len(by[name].GetMetric()); got != 201 {
			t.Errorf("%s has %d series, want 201", name, got)
		}
	}
	sum := 0.0
	for _, m := range by["drover_runs_started_total"].GetMetric() {
		sum += m.GetCounter().GetValue()
	}
	if sum != 10_000 {
		t.Errorf("%v runs were counted, want all", sum)
	}
	if got := by["drover_metric_overflow_total"].GetMetric()[0].GetCounter().GetValue(); got != 2*9_800 {
		t.Errorf("overflow: got %v", got)
	}
	all := 0
	for _, f := range by {
		all += len(f.GetMetric())
	}
	if all > 8_000 {
		t.Errorf("got %d series in all", all)
	}
}

// The native buckets say the same as the classic ones, and are what Prometheus takes.
func TestNativeHistogram(t *testing.T) {
	s := New("", "")
	h := &s.Namespace("a").Stats().LockWait
	for _, d := range []time.Duration{0, time.Microsecond, time.Millisecond, time.Second, time.Second, 2 * time.Second, time.Hour} {
		h.Observe(d)
	}
	got := gather(t, s)["drover_lock_wait_seconds"].GetMetric()[0].GetHistogram()
	if got.GetSchema() != 3 || got.GetZeroCount() != 2 || got.GetSampleCount() != 7 {
		t.Errorf("got schema %d, %d zero, %d in all", got.GetSchema(), got.GetZeroCount(), got.GetSampleCount())
	}
	var bucket int32
	var count, sum int64
	at := 0
	seen := map[int32]int64{}
	for _, span := range got.GetPositiveSpan() {
		bucket += span.GetOffset()
		for range span.GetLength() {
			count += got.GetPositiveDelta()[at]
			seen[bucket] = count
			sum += count
			at++
			bucket++
		}
	}
	if sum != 5 || seen[0] != 2 || seen[8] != 1 || at != len(got.GetPositiveDelta()) {
		t.Errorf("got buckets %v", seen)
	}
	for _, b := range got.GetBucket() {
		if b.GetUpperBound() == 0.5 && b.GetCumulativeCount() != 3 {
			t.Errorf("up to half a second: got %d, want 3", b.GetCumulativeCount())
		}
	}
}

// Whatever bytes a name has, there is a scrape.
func TestInvalidNames(t *testing.T) {
	s := New("", "")
	s.Namespace("a").Stats().Types.Of("caf\xe9").Started.Add(1)
	got := gather(t, s)["drover_runs_started_total"].GetMetric()[0].GetLabel()
	if len(got) != 2 || got[1].GetValue() != "caf?" {
		t.Errorf("got %v", got)
	}
}

// A namespace that is dropped is not shown any more, and nothing counts for a set that there is not.
func TestDrop(t *testing.T) {
	s := New("", "")
	s.Namespace("a")
	s.Namespace("b")
	s.Drop("a")
	if got := len(gather(t, s)["drover_master"].GetMetric()); got != 1 {
		t.Errorf("got %d namespaces, want one", got)
	}
	var none *Set
	n := none.Namespace("a")
	none.Drop("a")
	n.Roles(0, nil, nil)
	n.Purged(1)
	if n.Stats() != nil {
		t.Error("no set has no stats")
	}
}

// A scrape of a server with 200 workflow types and as many activity types, in the two forms that
// Prometheus asks for.
func BenchmarkScrape(b *testing.B) {
	l := listener(b, full(200))
	for form, accept := range map[string]string{
		"text":     "text/plain",
		"protobuf": "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited",
	} {
		b.Run(form, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				q := httptest.NewRequest(http.MethodGet, "/metrics", nil)
				q.Header.Set("Accept", accept)
				w := &counted{head: http.Header{}}
				l.handler().ServeHTTP(w, q)
				b.ReportMetric(float64(w.bytes), "bytes")
			}
		})
	}
}

// counted is an answer of which nothing is kept.
type counted struct {
	head  http.Header
	bytes int
}

func (c *counted) Header() http.Header         { return c.head }
func (c *counted) WriteHeader(int)             {}
func (c *counted) Write(b []byte) (int, error) { c.bytes += len(b); return len(b), nil }
