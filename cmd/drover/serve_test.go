package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/cmd/drover/serve"
	"github.com/droverhq/drover/ops/doctor"
	"github.com/droverhq/drover/server"
)

func TestServeAWorkflow(t *testing.T) {
	s := serving(t, memoryServer())
	if s.Profile != "dev" || s.Partitions != 4 || s.Namespace != "default" || s.Store != "" || strings.Join(s.Roles, "+") != "broker+timers+ops+flows" {
		t.Fatalf("got %+v", s.Info)
	}
	on := against(s.URL)

	on("start", "greet", "--id", "lonely").done(t)
	// The question to the deciders may still be on its way.
	for deadline := time.Now().Add(10 * time.Second); ; {
		r := on("why", "lonely")
		if r.code == cli.ExitDone && strings.Contains(r.stdout, `no decider for type "greet"`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %+v", r)
		}
	}
	on("start", "greet", "--id", "lonely").want(t, cli.ExitFailed, "", `drover: start "lonely"`)
	stop := work(t, s.URL)
	on("start", "greet", "--id", "g1", "--input", `"ox"`, "--wait").want(t, cli.ExitDone, "\"hello ox\"\n", "started g1")
	on("result", "g1").want(t, cli.ExitDone, "\"hello ox\"\n")
	on("start", "greet", "--id", "g2", "--input", `""`, "--wait").want(t, cli.ExitFailed, "", "failed: no-name")
	on("result", "lonely").want(t, cli.ExitFailed, "", "failed: no-name")
	on("result", "nobody").want(t, cli.ExitFailed, "", `"nobody"`)

	lines := strings.Split(strings.TrimSpace(on("history", "g1", "--json").stdout), "\n")
	for i, line := range lines {
		var e struct {
			ID         int64           `json:"id"`
			Type       string          `json:"type"`
			Time       time.Time       `json:"time"`
			Attributes json.RawMessage `json:"attributes"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.ID != int64(i+1) || e.Type == "" || e.Time.IsZero() || e.Attributes == nil {
			t.Fatalf("line %d: %s: %v", i, line, err)
		}
	}
	if len(lines) < 9 || !strings.Contains(lines[len(lines)-1], "WorkflowSuccess") {
		t.Fatalf("got %d events, the last %s", len(lines), lines[len(lines)-1])
	}
	if r := on("history", "g1", "--follow"); r.code != cli.ExitDone || strings.Count(r.stdout, "\n") != len(lines) {
		t.Fatalf("got %+v", r)
	}
	if r := on("list", "--json"); r.code != cli.ExitDone || strings.Count(r.stdout, "\n") != 3 {
		t.Fatalf("got %+v", r)
	}
	if r := on("list", "--status", "completed"); r.code != cli.ExitDone || !strings.Contains(r.stdout, "g1") || strings.Contains(r.stdout, "g2") {
		t.Fatalf("got %+v", r)
	}
	on("verify").want(t, cli.ExitDone, on("verify").stdout)
	stop()
	s.end(t)
	on("why", "g1").want(t, cli.ExitNoConnection, "", "no connection")
}

func TestServePauseAndResume(t *testing.T) {
	s := serving(t, memoryServer())
	on := against(s.URL)
	on("start", "greet", "--id", "g", "--input", `"ox"`).done(t)
	if r := on("pause", "g", "--reason", "to look"); r.code != cli.ExitDone || !strings.HasPrefix(r.stdout, "paused g run ") {
		t.Fatalf("got %+v", r)
	}
	work(t, s.URL)
	if r := on("why", "g"); !strings.Contains(r.stdout, "paused") || !strings.Contains(r.stdout, "to look") {
		t.Fatalf("got %+v", r)
	}
	on("resume", "g", "--json").done(t)
	on("result", "g").want(t, cli.ExitDone, "\"hello ox\"\n")
	if r := on("signal", "g", "late"); r.code != cli.ExitFailed || !strings.Contains(r.stderr, `signal "g"`) {
		t.Fatalf("got %+v", r)
	}
}

func TestServeKeepsItsStore(t *testing.T) {
	dir := t.TempDir()
	o := server.Options{Embedded: embedded.Options{StoreDir: dir, Port: -1, Profile: embedded.ProfileDev}, Partitions: 2}
	s := serving(t, o)
	if s.Store != dir || s.Partitions != 2 {
		t.Fatalf("got %+v", s.Info)
	}
	command("", "start", "greet", "--id", "g", "--nats", s.URL, "--json")

	command("", "server", "--store", dir, "--port", "-1").want(t, cli.ExitFailed, "", "drover: embedded server: store is in use", "this process")
	s.end(t)

	o.Partitions = 0
	began := time.Now()
	s = serving(t, o)
	if took := time.Since(began); took > 8*time.Second {
		t.Fatalf("ready after %v: claims of the earlier start were waited for", took)
	}
	if r := command("", "describe", "g", "--nats", s.URL); r.code != cli.ExitDone || s.Partitions != 2 {
		t.Fatalf("got %+v, %+v", r, s.Info)
	}
	s.end(t)

	command("", "server", "--store", dir, "--port", "-1", "--partitions", "3").want(t, cli.ExitFailed, "", "partitions")
}

// Two servers beside a NATS of its own: the second takes over when the first one stops, and has another name. Neither its ready line nor
// its record has the token that it connects with.
func TestServeExternal(t *testing.T) {
	nats := embeddedtest.Serve(t, embedded.Options{Port: -1})
	o := server.Options{External: &natsconn.Options{URL: nats.ClientURL()}}
	first := serving(t, o)
	if first.Profile != "external" || first.URL != nats.ClientURL() {
		t.Fatalf("got %+v", first.Info)
	}
	command("", "start", "greet", "--id", "g", "--nats", nats.ClientURL()).done(t)
	second := serving(t, server.Options{External: &natsconn.Options{URL: strings.Replace(nats.ClientURL(), "://", "://s3cret@", 1)}})
	if second.Node != first.Node+"-2" {
		t.Fatalf("got nodes %q and %q", first.Node, second.Node)
	}
	if r := command("", "node", "list", "--json", "--nats", nats.ClientURL()); !strings.Contains(r.stdout, second.Node) || strings.Contains(serve.ReadyLine(second.Info)+r.stdout, "s3cret") {
		t.Fatalf("got %s and %s, want no token", serve.ReadyLine(second.Info), r.stdout)
	}
	first.end(t)
	if r := command("", "describe", "g", "--nats", nats.ClientURL(), "--timeout", "30s"); r.code != cli.ExitDone || !strings.Contains(r.stdout, second.Node) {
		t.Fatalf("got %+v", r)
	}
	second.end(t)
}

// Accounts of hosted servers have limits by tier, and take no stream that has none. The first server says what it needs, and
// everything that is made later, such as a list and the store of large payloads, has a limit too.
func TestServeOnATieredAccount(t *testing.T) {
	url := embeddedtest.StartTiered(t, "R1", embeddedtest.Limits{
		MaxMemory: 0, MaxStore: 2 << 30, MaxStreams: 100, MaxConsumers: -1, MaxAckPending: -1, MaxBytesRequired: true,
	})
	command("", "server", "--nats", url).want(t, cli.ExitFailed, "", "drover-default-signals", "on each stream", "--max-bytes")
	command("", "server", "--nats", url, "--max-bytes", "1MiB").want(t, cli.ExitUsage, "", "--max-bytes is 1048576", "use at least 16777216, NONE for no limit, or leave it out")

	s := serving(t, server.Options{External: &natsconn.Options{URL: url}, MaxBytes: 32 << 20})
	work(t, url)
	large := strconv.Quote(strings.Repeat("ox", 600<<10))
	command(large, "start", "greet", "--id", "g", "--input", "-", "--nats", url).done(t)
	if r := command("", "result", "g", "--nats", url, "--timeout", "30s"); r.code != cli.ExitDone || r.stdout != `"hello `+large[1:]+"\n" {
		t.Fatalf("got exit code %d, %d bytes, %s", r.code, len(r.stdout), r.stderr)
	}
	finding(t, diagnose(t, cli.ExitDone, "--nats", url), doctor.OK, "account", "of its file storage", "of its streams (25)", "reserved by the limits of streams in R1")
	s.end(t)
}

// Bad input: flags of a server, and servers that cannot begin. What would be ignored is refused.
func TestServeRefuses(t *testing.T) {
	s := serving(t, memoryServer())
	port := s.URL[strings.LastIndexByte(s.URL, ':')+1:]
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args string
		code int
		want []string
	}{
		{"server --nats nats://127.0.0.1:1", cli.ExitNoConnection, []string{"nats://127.0.0.1:1"}},
		{"server --nats nats://127.0.0.1:1 --store x", cli.ExitUsage, []string{"--store is given"}},
		{"server --nats nats://127.0.0.1:1 --port 1", cli.ExitUsage, []string{"--port is given"}},
		{"server --user u", cli.ExitUsage, []string{"--user is given, which needs --nats"}},
		{"server --replicas 3", cli.ExitUsage, []string{"--replicas is given"}},
		{"server --memory --store x", cli.ExitUsage, []string{"exclude each other"}},
		{"server --memory --profile single --port -1", cli.ExitUsage, []string{"--profile is single", "or use --profile dev"}},
		{"server --profile best", cli.ExitUsage, []string{"--profile", "single, dev or cluster"}},
		{"server --roles broker,juggler", cli.ExitUsage, []string{`"juggler"`, "broker,timers,ops,flows"}},
		{"server --after-crash later", cli.ExitUsage, []string{"--after-crash", "recover or halt"}},
		{"server --nats nats://127.0.0.1:1 --after-crash halt", cli.ExitUsage, []string{"--after-crash is halt", "--node"}},
		{"server --drain-timeout soon", cli.ExitUsage, []string{"--drain-timeout", "1m30s"}},
		{"server --store " + file + " --port -1", cli.ExitFailed, []string{file}},
		{"dev --port " + port, cli.ExitFailed, []string{"port is in use", "another --port (-1"}},
		{"server --store " + filepath.Join(t.TempDir(), "s") + " --port -1 --cluster-name c --routes nats://127.0.0.1:1,nats://127.0.0.1:2,nats://127.0.0.1:3 --cluster-port " + port, cli.ExitFailed, []string{"another --cluster-port"}},
		{"dev --port 70000", cli.ExitUsage, []string{"--port is 70000", "or 0 for a free one"}},
		{"dev --port -1 --max-payload 5", cli.ExitUsage, []string{"--max-payload is 5"}},
		{"dev --port -1 --partitions 1000", cli.ExitUsage, []string{"--partitions is 1000"}},
		{"dev --port -1 --max-events -1", cli.ExitUsage, []string{"--max-events is -1", "50000"}},
		{"dev --port -1 --claim-ttl 1ms", cli.ExitUsage, []string{"--claim-ttl is 1ms", "or leave it out for 10s"}},
		{"dev --port -1 --namespace a.b", cli.ExitUsage, []string{"namespace"}},
		{"dev --port -1 --node a\nb", cli.ExitUsage, []string{"Node"}},
		{"dev --host nowhere.invalid:1", cli.ExitUsage, []string{"Host"}},
		{"dev --log-level loud", cli.ExitUsage, []string{"--log-level"}},
		{"dev x", cli.ExitUsage, []string{`argument "x" is too much`}},
	} {
		t.Run(tt.args, func(t *testing.T) {
			command("", strings.Split(tt.args, " ")...).want(t, tt.code, "", tt.want...)
		})
	}
	// What is refused leaves nothing after.
	for _, wrong := range []string{"--partitions=257", "--claim-ttl=1ms", "--max-bytes=5", "--port=70000"} {
		store := filepath.Join(t.TempDir(), "store")
		command("", "server", "--store", store, "--port", "-1", wrong).want(t, cli.ExitUsage, "", strings.Replace(wrong, "=", " is ", 1))
		if _, err := os.Stat(store); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: there is a store (%v)", wrong, err)
		}
	}
}
