package metrics

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func scrape(t testing.TB, r *prometheus.Registry, accept string) int {
	t.Helper()
	w, q := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil)
	q.Header.Set("Accept", accept)
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).
		ServeHTTP(w, q)
	if w.Code != http.StatusOK {
		t.Fatalf("got %d: %s", w.Code, w.Body)
	}
	return w.Body.Len()
}

func TestListen(t *testing.T) {
	l, err := Listen("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	l.Registry().MustRegister(full(2))
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
