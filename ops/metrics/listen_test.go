package metrics

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

func scrape(t testing.TB, h http.Handler, accept string) string {
	t.Helper()
	w, q := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil)
	q.Header.Set("Accept", accept)
	if h.ServeHTTP(w, q); w.Code != http.StatusOK {
		t.Fatalf("got %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func listener(t testing.TB, s *Set) *Listener {
	t.Helper()
	l, err := Listen("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	l.MustRegister(s)
	return l
}

// What is written here is, line by line, what Prometheus' own package writes of the same.
func TestText(t *testing.T) {
	s := full(3)
	s.store = "" // its disk is used meanwhile
	n := s.Namespace("a \"b\"\n\\c")
	n.Stats().LockWait.Observe(1234567 * time.Microsecond)
	n.Stats().Commits.Bytes.Add(123456789012)
	for _, p := range s.Namespace("default").Stats().Owned() {
		p.InboxSince.Store(0) // ages are never the same twice
	}
	s.Namespace("default").read.lists[0].OldestAt = 0
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(s)
	var ours strings.Builder
	if err := s.writeText(&ours); err != nil {
		t.Fatal(err)
	}
	theirs := scrape(t, promhttp.HandlerFor(r, promhttp.HandlerOpts{}), "text/plain")
	a, b := strings.Split(ours.String(), "\n"), strings.Split(theirs, "\n")
	slices.Sort(a)
	slices.Sort(b)
	if diff := cmp.Diff(b, a); diff != "" {
		t.Errorf("-theirs +ours:\n%s", diff)
	}
	// and all series of a metric are together, after its head
	seen := map[string]bool{}
	for line := range strings.SplitSeq(ours.String(), "\n") {
		if name, ok := strings.CutPrefix(line, "# HELP "); ok {
			if name, _, _ = strings.Cut(name, " "); seen[name] {
				t.Errorf("%s comes twice", name)
			}
			seen[name] = true
		}
	}
}

// A scrape that takes protobuf has native histograms.
func TestProtobuf(t *testing.T) {
	const accept = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,text/plain;q=0.3"
	l := listener(t, full(1))
	h := http.Header{"Content-Type": {string(expfmt.NewFormat(expfmt.TypeProtoDelim))}}
	for d := expfmt.NewDecoder(strings.NewReader(scrape(t, l.handler(), accept)), expfmt.ResponseFormat(h)); ; {
		var f dto.MetricFamily
		if err := d.Decode(&f); err != nil {
			t.Fatalf("no drover_run_duration_seconds before %v", err)
		}
		if f.GetName() != "drover_run_duration_seconds" {
			continue
		}
		if got := f.GetMetric()[0].GetHistogram(); got.GetSchema() != 3 || len(got.GetPositiveSpan()) != 1 {
			t.Errorf("got %v, want native buckets", got)
		}
		return
	}
}

func TestListen(t *testing.T) {
	l, err := Listen("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	set := full(2)
	l.MustRegister(set)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- l.Serve(ctx) }()
	if _, err := Listen(l.Addr(), false); err == nil || !strings.Contains(err.Error(), l.Addr()) {
		t.Errorf("a port that is taken: got %v", err)
	}
	answer, err := http.Get("http://" + l.Addr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`drover_runs_started_total{namespace="default",type="type1"} 1`,
		`drover_run_duration_seconds_bucket{namespace="default",type="type1",le="0.005"} 1`,
		"\ngo_goroutines ",
	} {
		if !strings.Contains(string(body), want) {
			t.Errorf("no %s in the answer", want)
		}
	}
	if again := l.Register(New("", "")); again == nil {
		t.Error("two sets are shown at one address")
	}
	if l.Unregister(set); strings.Contains(scrape(t, l.handler(), "text/plain"), "drover_") {
		t.Error("a set that is taken away is shown")
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("it ends with %v", err)
	}
}

func TestOnlyLoopback(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "[::]:0", "example.com:0"} {
		if l, err := Listen(address, false); !errors.Is(err, ErrPublic) {
			t.Errorf("%s: got %v", address, err)
			if err == nil {
				l.Close()
			}
		}
	}
	for _, address := range []string{"127.0.0.1:0", "localhost:0", "127.9.9.9:0"} {
		l, err := Listen(address, false)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		l.Close()
	}
	if l, err := Listen("0.0.0.0:0", true); err != nil {
		t.Errorf("with a word that says so: %v", err)
	} else {
		l.Close()
	}
	if _, err := Listen("nonsense", true); err == nil {
		t.Error("an address without a port is taken")
	}
}
