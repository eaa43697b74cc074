package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// ErrPublic says that an address is not on loopback.
var ErrPublic = errors.New("the address is not on loopback")

// Listener answers Prometheus over HTTP. [Listen] makes it.
type Listener struct {
	at       net.Listener
	registry *prometheus.Registry
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
	l := &Listener{at: at, registry: prometheus.NewRegistry()}
	l.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return l, nil
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Registry takes what is to be shown.
func (l *Listener) Registry() *prometheus.Registry { return l.registry }

// Addr is the address that it listens on.
func (l *Listener) Addr() string { return l.at.Addr().String() }

// Serve answers at /metrics until ctx ends.
func (l *Listener) Serve(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(l.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4,
	}))
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
