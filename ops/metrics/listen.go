package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// ErrPublic says that an address is not on loopback.
var ErrPublic = errors.New("the address is not on loopback")

// Listener answers Prometheus over HTTP. [Listen] makes it. It is a [prometheus.Registerer] of one
// [Set], and shows what Go and the system tell of the process besides.
type Listener struct {
	at      net.Listener
	process *prometheus.Registry
	all     *prometheus.Registry // that, and the set
	set     atomic.Pointer[Set]
}

// Listen takes an address such as 127.0.0.1:9464. Whoever reaches it can read the metrics, which
// tell names of workflows: an address that is not on loopback is [ErrPublic] unless public is true.
func Listen(address string, public bool) (*Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if !public && !loopback(host) {
		return nil, fmt.Errorf("%s: %w", address, ErrPublic)
	}
	at, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	l := &Listener{at: at, process: prometheus.NewRegistry(), all: prometheus.NewRegistry()}
	for _, r := range []*prometheus.Registry{l.process, l.all} {
		r.MustRegister(collectors.NewGoCollector(),
			collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	return l, nil
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Register implements [prometheus.Registerer].
func (l *Listener) Register(c prometheus.Collector) error {
	err := l.all.Register(c)
	if s, ok := c.(*Set); ok && err == nil {
		l.set.Store(s)
	}
	return err
}

// MustRegister implements [prometheus.Registerer].
func (l *Listener) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := l.Register(c); err != nil {
			panic(err)
		}
	}
}

// Unregister implements [prometheus.Registerer].
func (l *Listener) Unregister(c prometheus.Collector) bool {
	if s, ok := c.(*Set); ok {
		l.set.CompareAndSwap(s, nil)
	}
	return l.all.Unregister(c)
}

// Addr is the address that it listens on.
func (l *Listener) Addr() string { return l.at.Addr().String() }

// Serve answers at /metrics until ctx ends.
func (l *Listener) Serve(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", l.handler())
	s := &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute,
	}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })() // nobody waits for a scrape
	if err := s.Serve(l.at); ctx.Err() == nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// Close ends a listener that does not serve.
func (l *Listener) Close() { _ = l.at.Close() }

// handler answers in the text form, or as packed as Prometheus wants it for native histograms.
func (l *Listener) handler() http.Handler {
	o := promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4}
	packed := promhttp.HandlerFor(l.all, o)
	o.DisableCompression = true // the set's part is not compressed either
	process := promhttp.HandlerFor(l.process, o)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		set := l.set.Load()
		if set == nil || strings.Contains(r.Header.Get("Accept"), "application/vnd.google.protobuf") {
			packed.ServeHTTP(w, r)
			return
		}
		r = r.Clone(r.Context())
		r.Header.Set("Accept", "text/plain;version=0.0.4")
		process.ServeHTTP(w, r)
		_ = set.writeText(w) // an error is that of somebody who is gone
	})
}
