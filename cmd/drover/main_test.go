package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
)

var update = flag.Bool("update", false, "rewrite the golden files with what came out; review the difference")

func TestMain(m *testing.M) {
	if os.Getenv(asDrover) != "" {
		main()
	}
	flag.Parse()
	os.Exit(alone(m))
}

// alone runs the tests without what the machine says about NATS.
func alone(m *testing.M) int {
	for _, name := range []string{"NATS_URL", cli.ContextEnv} {
		if err := os.Unsetenv(name); err != nil {
			panic(err)
		}
	}
	dir, err := os.MkdirTemp("", "drover-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Setenv("XDG_CONFIG_HOME", dir); err != nil {
		panic(err)
	}
	defer embedded.RegisterTicker()()
	return m.Run()
}

// service plays the API by hand, in JSON, on a server that listens.
type service struct {
	t    *testing.T
	url  string
	conn *natsconn.Conn
	mu   sync.Mutex // held while an answer is made
}

func newService(t *testing.T) *service {
	t.Helper()
	srv := embeddedtest.Serve(t, embedded.Options{Port: -1})
	conn := embeddedtest.Connect(t, srv)
	return &service{t: t, url: srv.ClientURL(), conn: conn}
}

// on answers a verb; nil means silence.
func on[Request any](s *service, verb string, fn func(Request) any) {
	s.t.Helper()
	_, err := s.conn.Subscribe(subject.Namespace("default").API(verb), "", func(m natsconn.Msg) {
		var req Request
		if err := schemas.Unmarshal(m.Data, &req); err != nil {
			s.t.Errorf("%s: %v", verb, err)
			return
		}
		s.mu.Lock()
		answer := fn(req)
		s.mu.Unlock()
		if answer == nil {
			return
		}
		body, err := schemas.MarshalJSON(answer)
		if err != nil {
			s.t.Errorf("%s: %v", verb, err)
			return
		}
		if err := m.Respond(nil, body); err != nil {
			s.t.Errorf("%s: %v", verb, err)
		}
	})
	if err != nil {
		s.t.Fatal(err)
	}
	// The commands come on connections of their own: the server must know the interest first.
	if _, err := s.conn.Request(s.t.Context(), "nobody", nil, nil); !errors.Is(err, natsconn.ErrNoResponders) {
		s.t.Fatalf("got %v, want ErrNoResponders", err)
	}
}

// result is what a command line did.
type result struct {
	code           int
	stdout, stderr string
}

// drover runs a command line against the service.
func (s *service) drover(stdin string, args ...string) result {
	s.settle()
	defer s.settle()
	return command(stdin, append(args, "--nats", s.url)...)
}

// settle orders what the test does before and after with what the answers do: the race detector does not see that a
// request over a socket does so already.
func (s *service) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
}

func command(stdin string, args ...string) result {
	var out, err bytes.Buffer
	code := execute(context.Background(), args, strings.NewReader(stdin), &out, &err)
	return result{code, out.String(), err.String()}
}

// against returns what runs a command against the server at url.
func against(url string) func(args ...string) result {
	return func(args ...string) result { return command("", append(args, "--nats", url, "--timeout", "30s")...) }
}

// done returns what a command printed, which has to succeed.
func (r result) done(t *testing.T) (stdout string) {
	t.Helper()
	if r.code != cli.ExitDone {
		t.Fatalf("got exit code %d, want %d\nstdout: %s\nstderr: %s", r.code, cli.ExitDone, r.stdout, r.stderr)
	}
	return r.stdout
}

// want checks exit code, stdout exactly, and that stderr holds each of the words; none means that it is empty.
func (r result) want(t *testing.T, code int, stdout string, stderr ...string) {
	t.Helper()
	if r.code != code {
		t.Fatalf("got exit code %d, want %d\nstdout: %s\nstderr: %s", r.code, code, r.stdout, r.stderr)
	}
	if diff := cmp.Diff(stdout, r.stdout); diff != "" {
		t.Fatalf("stdout (-want +got):\n%s\nstderr: %s", diff, r.stderr)
	}
	if len(stderr) == 0 && r.stderr != "" {
		t.Fatalf("got stderr %q, want none", r.stderr)
	}
	for _, w := range stderr {
		if !strings.Contains(r.stderr, w) {
			t.Fatalf("got stderr %q, want it to hold %q", r.stderr, w)
		}
	}
}

// golden compares with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s\nrun go test with -update if this is right", path, diff)
	}
}

// at is an instant some seconds after the beginning of the tests' time.
func at(seconds float64) schemas.Timestamp {
	return schemas.At(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)).Add(schemas.Seconds(seconds))
}
