// Package flows_test runs the flows of this folder: against the real engine in virtual time, and against a web server of the test's
// own. What the flows are for stands in README.md.
package flows_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/activity/kinds"
	"github.com/droverhq/drover/decider/flow"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// files is a store of the flows of this folder. Those that are no flows but step types are known to all others.
type files struct {
	flows map[string]*model.Definition
}

// readFiles reads step types and flows by their names, and takes others as they are.
func readFiles(t *testing.T, types, flows []string, also map[string]string) *files {
	t.Helper()
	known := map[string]*model.Definition{}
	o := &flow.ParseOptions{
		Types: func(name string) (*model.Definition, bool) { d, ok := known[name]; return d, ok },
		Warn:  func(e *model.Error) { t.Errorf("a warning: %v", e) },
	}
	parse := func(name string, text []byte, err error) *model.Definition {
		if err != nil {
			t.Fatal(err)
		}
		d, err := flow.Parse(name+".yaml", text, o)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, name := range types {
		d := parse(read(name))
		known[d.ID] = d
	}
	s := &files{flows: map[string]*model.Definition{}}
	for _, name := range flows {
		d := parse(read(name))
		s.flows[d.Name] = d
	}
	for name, text := range also {
		s.flows[name] = parse(name, []byte(text), nil)
	}
	return s
}

func read(name string) (string, []byte, error) {
	text, err := os.ReadFile(name + ".yaml")
	return name, text, err
}

func (s *files) Definition(_ context.Context, _, name, version string) (*model.Definition, string, error) {
	d := s.flows[name]
	if d == nil || version != "" && version != d.Version() {
		return nil, "", fmt.Errorf("%w: %s, version %q", flow.ErrNoDefinition, name, version)
	}
	return d, d.Version(), nil
}

// site is a web server within the bubble of a test: real HTTP over pipes, because a socket stops the virtual clock. It answers for
// every host.
type site struct {
	http.Handler
	conns chan net.Conn
	gone  chan struct{}
	once  sync.Once
}

func newSite(t *testing.T, h http.Handler) *site {
	s := &site{Handler: h, conns: make(chan net.Conn), gone: make(chan struct{})}
	server := &httptest.Server{Listener: s, Config: &http.Server{Handler: h}}
	server.Start()
	t.Cleanup(server.Close)
	return s
}

var errGone = errors.New("the site is gone")

// Accept implements net.Listener.
func (s *site) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.gone:
		return nil, errGone
	}
}

// Close implements net.Listener.
func (s *site) Close() error {
	s.once.Do(func() { close(s.gone) })
	return nil
}

// Addr implements net.Listener.
func (s *site) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// dial is for a transport. It has done what TLS does: nobody listens on a pipe.
func (s *site) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case s.conns <- theirs:
		return ours, nil
	case <-s.gone:
		return nil, errGone
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// transport makes calls to the site, whatever their host is.
func (s *site) transport() *http.Transport {
	return &http.Transport{DialContext: s.dial, DialTLSContext: s.dial, DisableKeepAlives: true}
}

// house is what the tests share.
type house struct {
	*drovertest.Env
	t    *testing.T
	site *site
}

// list is the task list of the activities.
const list = "main"

// live runs f in virtual time, with deciders for the flows and a worker for their steps, whose calls the handler answers.
func live(t *testing.T, types, flows []string, also map[string]string, h http.Handler, f func(t *testing.T, h *house)) {
	t.Helper()
	store := readFiles(t, types, flows, also)
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		x := &house{Env: e, t: t, site: newSite(t, h)}
		deciders := e.Client.Deciders(nil)
		d := flow.New(store, &flow.Options{List: list, Random: func() float64 { return 0.5 }})
		for name := range store.flows {
			deciders.Register(name, d)
		}
		e.Go(deciders, x.worker())
		f(t, x)
	})
}

// worker serves the steps of the flows. Commands for other machines go to the site, too.
func (h *house) worker() *activity.Worker {
	w := h.Client.Activities(&activity.Options{Lists: []string{list}})
	activity.Register(w, kinds.TypeHTTP, kinds.HTTP(&kinds.HTTPOptions{Transport: h.site.transport()}))
	activity.Register(w, "ssh", func(ctx context.Context, in struct {
		Command string `json:"command"`
	},
	) (map[string]any, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://ssh.example/", strings.NewReader(in.Command))
		if err != nil {
			return nil, err
		}
		resp, err := (&http.Client{Transport: h.site.transport()}).Do(req)
		if err != nil {
			return nil, err
		}
		return map[string]any{"exit_code": 0}, resp.Body.Close()
	})
	return w
}

func (h *house) start(typ, id string, input any) *drover.Run {
	h.t.Helper()
	run, err := h.Client.Start(h.t.Context(), typ, input, &drover.StartOptions{ID: id})
	if err != nil {
		h.t.Fatal(err)
	}
	return run
}

// completes waits for the end of a run and compares its result, in JSON.
func (h *house) completes(run *drover.Run, want string) {
	h.t.Helper()
	out := h.Wait(run)
	if out.Status != schemas.StatusCompleted || string(out.Result) != want {
		h.t.Errorf("%s: got %s with %s %s %s, want completed with %s\n%s", run.ID, out.Status, out.Result, out.Reason, out.Details, want, h.History(run.ID))
	}
}

// The house itself: what a test sees of time is virtual, also where a site takes long.
func TestSite(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		s := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Host, r.URL.Path) }))
		for _, url := range []string{"http://a.example/x", "https://b.example/y"} {
			resp, err := (&http.Client{Transport: s.transport()}).Get(url)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if body := make([]byte, 100); resp.StatusCode != http.StatusOK {
				t.Errorf("%s: got %d", url, resp.StatusCode)
			} else if n, _ := resp.Body.Read(body); !strings.HasSuffix(url, string(body[:n])) {
				t.Errorf("%s: got %q", url, body[:n])
			}
		}
	})
}
