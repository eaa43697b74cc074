package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/droverhq/drover/activity/kinds"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/cmd/drover/serve"
	"github.com/droverhq/drover/e2e/kit"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
)

func TestWorkerUsage(t *testing.T) {
	for _, tt := range []struct {
		args string
		want string
	}{
		{"worker", "--list is missing"},
		{"worker --list a.b", "--list"},
		{"worker --flows --kinds http", "--kinds is given, which goes with --list"},
		{"worker --flows --concurrency 3", "--concurrency is given, which goes with --list"},
		{"worker --list a --kinds ssh", `--kinds names "ssh": use some of http,request,publish,load,shell`},
		{"worker --list a --kinds=", "--kinds is empty"},
		{"worker --list a,b --concurrency 1", "--concurrency is 1 for 2 lists"},
		{"worker --list a --concurrency -1", "--concurrency is -1"},
		{"worker --list a --kinds request --http-host b", "--http-host is given, which goes with the kind http or load"},
		{"worker --list a --load-dir b --kinds http", "--load-dir is given, which goes with the kind load"},
		{"worker --list a --shell-env b", "--shell-env is given, which goes with the kind shell"},
		{"worker --list a --drain-timeout soon", "--drain-timeout"},
		{"worker --list a,b --list a", `--list names "a" twice`},
		{"worker --list a --identity b\nc", "--identity"},
		{"worker --flows --identity b\nc", "--identity"},
		{"worker --flows --list=", "--list is empty"},
		{"worker --list a --http-host=", "--http-host is empty"},
		{"worker --list a --load-dir=", "--load-dir is empty"},
		{"worker a", `argument "a" is too much`},
	} {
		t.Run("bad input: "+tt.args, func(t *testing.T) {
			command("", strings.Split(tt.args, " ")...).want(t, cli.ExitUsage, "", tt.want, `see "drover worker --help"`)
		})
	}
	if r := command("", "worker", "--help"); r.code != cli.ExitDone || !strings.Contains(r.stdout, "drover worker") {
		t.Fatalf("got %d %q", r.code, r.stdout)
	}
}

// calls is the process of a worker of list calls, and the broker played by hand.
type calls struct {
	t       *testing.T
	s       *service
	reports chan schemas.Report
	worker  *kit.Child
	ready   serve.WorkerReady
}

const callsNS = subject.Namespace("default")

func newCalls(t *testing.T, args ...string) *calls {
	t.Helper()
	c := &calls{t: t, s: newService(t), reports: make(chan schemas.Report, 10)}
	_, err := topology.Ensure(t.Context(), c.s.conn, topology.Options{Partitions: 1, Memory: true})
	if err == nil {
		err = topology.EnsureList(t.Context(), c.s.conn, callsNS, "calls", topology.ListOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	reader, err := c.s.conn.Read(t.Context(), callsNS.StreamIn(0), natsconn.ReadOptions{}, func(m natsconn.Stored) {
		var r schemas.Report
		if err := schemas.Unmarshal(m.Data, &r); err != nil {
			t.Error(err)
		}
		c.reports <- r
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reader.Close(); <-reader.Done() })
	c.worker = spawn(t, &c.ready, append([]string{"worker", "--list", "calls", "--nats", c.s.url}, args...)...)
	return c
}

func (c *calls) dispatch(id int, url string) {
	c.t.Helper()
	input, err := schemas.JSONPayload(kinds.HTTPInput{URL: url})
	if err != nil {
		c.t.Fatal(err)
	}
	body, err := json.Marshal(&schemas.ActivityTask{
		V: schemas.Version, Type: kinds.TypeHTTP, Input: input, Token: fmt.Sprintf("RUN.%d.1", id), List: "calls",
		Report: callsNS.ActOutcome(0, "w", "calls"),
	})
	if err == nil {
		_, err = c.s.conn.PublishSync(c.t.Context(), callsNS.Task("calls", 0), nil, body)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// report awaits a report. What takes long says that it has started first: on a busy machine any call.
func (c *calls) report(kind schemas.ReportKind, token string) {
	c.t.Helper()
	select {
	case r := <-c.reports:
		if r.Token == token && r.Kind == schemas.ReportStarted && kind != r.Kind {
			c.report(kind, token)
			return
		}
		if r.Kind != kind || r.Token != token {
			c.t.Fatalf("got %s of %s (%s %s), want %s of %s", r.Kind, r.Token, r.Reason, r.Details, kind, token)
		}
		if r.Identity != "" && r.Identity != c.ready.Identity {
			c.t.Fatalf("got identity %q, want %q", r.Identity, c.ready.Identity)
		}
	case <-time.After(20 * time.Second):
		c.t.Fatalf("got no report in twenty seconds, want %s of %s", kind, token)
	}
}

// SIGTERM lets what runs end and be reported, and takes nothing more; nothing that ended is done again.
func TestWorkerDrainsOnSIGTERM(t *testing.T) {
	began, finish := make(chan struct{}, 10), make(chan struct{})
	var served atomic.Int32
	site := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		served.Add(1)
		if r.URL.Path == "/slow" {
			began <- struct{}{}
			<-finish
		}
	}))
	t.Cleanup(site.Close)
	c := newCalls(t)
	c.dispatch(1, site.URL+"/quick")
	c.report(schemas.ReportSuccess, "RUN.1.1")
	c.dispatch(2, site.URL+"/slow")
	<-began
	c.report(schemas.ReportStarted, "RUN.2.1")
	c.worker.Signal(syscall.SIGTERM)
	// The worker stops to pull: from then on its requests are gone from the server.
	awaitNobodyPulls(t, c)
	c.dispatch(3, site.URL+"/late")
	close(finish)
	c.report(schemas.ReportSuccess, "RUN.2.1")
	c.worker.Leaves(patience)
	s, err := c.s.conn.JetStream().Stream(t.Context(), callsNS.StreamTasks("calls"))
	if err != nil {
		t.Fatal(err)
	}
	if left := s.CachedInfo().State.Msgs; left != 1 || served.Load() != 2 {
		t.Fatalf("got %d tasks left and %d calls, want the late one left and each of the others done once", left, served.Load())
	}
}

// A second signal ends the process although something runs.
func TestWorkerIsCutShort(t *testing.T) {
	began := make(chan struct{}, 1)
	gone := make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
		close(gone)
	}))
	t.Cleanup(site.Close)
	c := newCalls(t, "--kinds", "http", "--http-host", "127.0.0.1")
	c.dispatch(1, "http://example.org/")
	c.report(schemas.ReportFailed, "RUN.1.1")
	c.dispatch(2, site.URL)
	<-began
	for tick := time.NewTicker(serve.Doubled + 100*time.Millisecond); ; <-tick.C {
		c.worker.Signal(syscall.SIGTERM)
		select {
		case <-gone:
		case <-c.worker.Ended:
		default:
			continue
		}
		break
	}
	if code := c.worker.Ends(patience); code != cli.ExitFailed {
		t.Fatalf("got %v, want exit code %d", c.worker.Err, cli.ExitFailed)
	}
}

// awaitNobodyPulls waits until no pull request stands at the list's consumers.
func awaitNobodyPulls(t *testing.T, c *calls) {
	t.Helper()
	poll.Until(t, time.Minute, "nobody pulls", func() bool {
		for _, name := range subject.Consumers() {
			cons, err := c.s.conn.JetStream().Consumer(t.Context(), callsNS.StreamTasks("calls"), name)
			if err != nil {
				t.Fatal(err)
			}
			if cons.CachedInfo().NumWaiting > 0 {
				return false
			}
		}
		return true
	})
}
