package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
)

// Bad input: the command line. Exit code 2, stdout stays empty, stderr says what is wrong and where to look.
func TestWrongUsage(t *testing.T) {
	s := newService(t)
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, []byte(`{"a":`), 0o600); err != nil {
		t.Fatal(err)
	}
	huge := filepath.Join(t.TempDir(), "huge.json")
	if err := os.WriteFile(huge, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 1<<40); err != nil { // more than fits the memory; it takes no room on the disk
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args  string
		stdin string
		want  []string
	}{
		{args: "", want: []string{"a command is missing", `see "drover --help"`}},
		{args: "strat order", want: []string{`no command "strat"`, "did you mean start"}},
		{args: "frobnicate", want: []string{`no command "frobnicate"`}},
		{args: "start", want: []string{"TYPE is missing", `see "drover start --help"`}},
		{args: "signal a", want: []string{"NAME is missing"}},
		{args: "signal", want: []string{"ID and NAME is missing"}},
		{args: "start a b", want: []string{`argument "b" is too much`}},
		{args: "list a", want: []string{`the query cannot be read: column 2: a: found the end of the query`, "\n   ^\n"}},
		{args: "list --nonsense", want: []string{"unknown flag: --nonsense"}},
		{args: "list --limit x", want: []string{`--limit is "x": want a whole number`}},
		{args: "start t --priority 99999999999999999999", want: []string{"--priority is 99999999999999999999, which is too large or too small: want a whole number"}},
		{args: "dead --after -1", want: []string{`--after is "-1": want a whole number from 0 on`}},
		{args: "type register activity a --retry-backoff x", want: []string{`--retry-backoff is "x": want a number such as 1.5`}},
		{args: "list --json=x", want: []string{`--json is "x": want true or false`}},
		{args: "list --limit -1", want: []string{"Limit is -1"}},
		{args: "list --status done", want: []string{`--status is "done"`, "completed"}},
		{args: "start t --input {", want: []string{"--input is not JSON", "--raw"}},
		{args: "start t --input hello", want: []string{"--input is not JSON"}},
		{args: "start t --input -", stdin: "", want: []string{"standard input", "not JSON"}},
		{args: "start t --input @" + broken, want: []string{"broken.json", "not JSON"}},
		{args: "start t --input @/nowhere", want: []string{"/nowhere", "no such file"}},
		{args: "start t --input @" + huge, want: []string{"huge.json has more than 64.0MiB"}},
		{args: "terminate t --raw --details @" + huge, want: []string{"huge.json has more than 64.0MiB"}},
		{args: "start t --id=", want: []string{"--id is empty"}},
		{args: "start t --id a\nb", want: []string{"control character"}},
		{args: "start t --timeout-workflow soon", want: []string{"--timeout-workflow", "1m30s"}},
		{args: "start t --timeout-workflow -5s", want: []string{"--timeout-workflow"}},
		{args: "start t --child-policy kill", want: []string{"--child-policy", "abandon"}},
		{args: "start t --attribute a", want: []string{"--attribute"}},
		{args: "result t --timeout NONE", want: []string{"--timeout"}},
		{args: "why a --log-level loud", want: []string{"--log-level", "debug"}},
		{args: "why a --namespace a.b", want: []string{"namespace"}},
		{args: "why a --user u --creds f", want: []string{"only one of"}},
		{args: "why a --nkey /nowhere", want: []string{"/nowhere"}},
		{args: "why a --tlscert c", want: []string{"CertFile and KeyFile belong together"}},
		{args: "result ", want: []string{"workflow id is empty"}},
		{args: "start t --reuse-policy never", want: []string{"--reuse-policy", "failed-only"}},
		{args: "start t --conflict-policy fight", want: []string{"--conflict-policy", "use-existing"}},
		{args: "start t --signal s", want: []string{"--signal needs --id"}},
		{args: "start t --id a --signal=", want: []string{"--signal is empty"}},
		{args: "start t --id a --signal-input 1", want: []string{"--signal-input", "needs --signal"}},
		{args: "start t --id a --signal s --signal-input {", want: []string{"--signal-input is not JSON"}},
		{args: "start t --id a --signal s --input - --signal-input -", want: []string{"both read standard input"}},
		{args: "start t --id a --signal a\nb", want: []string{"signal name", "control character"}},
		{args: "terminate a --details {", want: []string{"--details is not JSON", "--raw"}},
		{args: "terminate a --child-policy kill", want: []string{"--child-policy", "abandon"}},
		{args: "terminate", want: []string{"ID is missing"}},
		{args: "cancel a b", want: []string{`argument "b" is too much`}},
		{args: "count --status done", want: []string{`--status is "done"`}},
		{args: "count --limit 3", want: []string{"unknown flag: --limit"}},
		{args: "list --closed-after soon", want: []string{"--closed-after", "2026-01-02"}},
		{args: "list --started-before 5", want: []string{"--started-before"}},
		{args: "list -o xml", want: []string{"--output", "table, json, yaml"}},
		{args: "node list a", want: []string{`argument "a" is too much`}},
		{args: "node", want: []string{"list, ack or remove is missing"}},
		{args: "node kill a", want: []string{`no command "node kill"`, "use ack, list or remove"}},
		{args: "node ack", want: []string{"NODE is missing"}},
		{args: "claims a", want: []string{`argument "a" is too much`}},
		{args: "drain", want: []string{"NODE is missing"}},
		{args: "drain a --drain-timeout NONE", want: []string{"--drain-timeout", "NONE"}},
		{args: "drain a --drain-timeout 0", want: []string{"--drain-timeout", "0 is not possible here"}},
		{args: "server --drain-timeout 0s", want: []string{"--drain-timeout", "0 is not possible here"}},
		{args: "server --claim-ttl 0", want: []string{"--claim-ttl", "0 is not possible here"}},
		{args: "worker --list a --drain-timeout 0", want: []string{"--drain-timeout", "0 is not possible here"}},
		{args: "drain a\nb", want: []string{"NODE", "control character"}},
		{args: "dev", want: []string{"--nats or --context is given", "drover server --nats"}}, // by every line of this test
		{args: "dev --context c", want: []string{"is given", "drover server"}},
		{args: "server --timeout 5s", want: []string{"--timeout is given", "goes on until"}},
		{args: "worker --list a --timeout 5s", want: []string{"--timeout is given", "goes on until"}},
		{args: "start t --id a --request-id=", want: []string{"--request-id is empty"}},
		{args: "replay a --request-id=", want: []string{"--request-id is empty"}},
		{args: "terminate a --run=", want: []string{"--run is empty"}},
		{args: "cancel a --run=", want: []string{"--run is empty"}},
		{args: "pause a --run=", want: []string{"--run is empty"}},
		{args: "namespace create n --description=", want: []string{"--description is empty"}},
		{args: "namespace create n --retention=", want: []string{"--retention is empty"}},
		{args: "worker --list a --kinds http,shell,http", want: []string{`--kinds names "http" twice`}},
		{args: "server --roles=", want: []string{"--roles is empty"}},
		{args: "server --store=", want: []string{"--store is empty"}}, // it would forget everything at its end
		{args: "server --memory --profile=", want: []string{"--profile is empty"}},
		{args: "terminate a --namespace=", want: []string{"--namespace is empty"}}, // it would be the run of another tenant
		{args: "why a -n ", want: []string{"--namespace is empty"}},
		{args: "why a --creds=", want: []string{"--creds is empty"}},
		{args: "lock break l --reason r --holder=", want: []string{"--holder is empty"}},
		{args: "lock break l --reason r --scope=", want: []string{"--scope is empty"}},
		{args: "start t --flow --type-version=", want: []string{"--type-version is empty"}},
		{args: "start t --tag=", want: []string{"--tag is empty"}},
		{args: "type delete workflow order --version=", want: []string{"--version is empty"}},
		{args: "count --id=", want: []string{"--id is empty"}},
		{args: "list --status=", want: []string{"--status is empty"}},
		{args: "result a --run=", want: []string{"--run is empty"}},
		{args: "completion tcsh", want: []string{"tcsh"}},
	} {
		t.Run(tt.args, func(t *testing.T) {
			args := strings.Split(tt.args, " ")
			if tt.args == "" {
				args = nil
			}
			s.drover(tt.stdin, args...).want(t, cli.ExitUsage, "", append(tt.want, "drover: ")...)
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"help"}, {"start", "--help"}, {"help", "history"}, {"version"}, {"--version"}, {"completion", "bash"}} {
		r := command("", args...)
		if r.code != cli.ExitDone || r.stderr != "" || !strings.Contains(r.stdout, "drover") {
			t.Fatalf("%v: got %d, stderr %q, stdout %.80q", args, r.code, r.stderr, r.stdout)
		}
	}
	r := command("", "version", "--json")
	var doc struct {
		Version, Go, Platform string
		Protocol              int
	}
	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil || doc.Version == "" || doc.Protocol != schemas.Version || doc.Go == "" {
		t.Fatalf("got %q, %v", r.stdout, err)
	}
	if got, want := command("", "help").stdout, command("", "--help").stdout; got != want {
		t.Fatalf("help prints %q, --help prints %q", got, want)
	}
	// These commands are there and have a help text.
	for name := range strings.FieldsSeq("server dev start signal history describe result list count tasklist lock why cancel terminate resume pause dead verify doctor auth version schedule always-on once type flow namespace node claims drain completion") {
		if r := command("", name, "--help"); r.code != cli.ExitDone || !strings.Contains(r.stdout, "drover "+name) {
			t.Fatalf("%s --help: got %d %q", name, r.code, r.stdout)
		}
	}
}

func TestNoConnection(t *testing.T) {
	command("", "why", "a", "--nats", "nats://127.0.0.1:1").
		want(t, cli.ExitNoConnection, "", "drover: connect: no connection to NATS at nats://127.0.0.1:1", "drover server")
	t.Setenv("NATS_URL", "nats://127.0.0.1:2")
	command("", "why", "a").want(t, cli.ExitNoConnection, "", "127.0.0.1:2")

	s := newService(t)
	r := s.drover("", "why", "a", "--timeout", "1s", "--json")
	r.want(t, cli.ExitNoConnection, "", "{")
	wantErrorDocument(t, r, schemas.CodeUnavailable, "a")
}

func TestTimeout(t *testing.T) {
	s := newService(t)
	on(s, "result", func(schemas.ExecutionRequest) any {
		return schemas.ResultResponse{Run: "r1", Status: schemas.StatusOpen}
	})
	s.drover("", "result", "a", "--timeout", "1").want(t, cli.ExitTimeout, "", `drover: result "a"`, "had not ended")
}

// wantErrorDocument checks the one line of JSON on stderr.
func wantErrorDocument(t *testing.T, r result, code schemas.Code, id string) *schemas.Error {
	t.Helper()
	var doc struct {
		Error *schemas.Error `json:"error"`
	}
	lines := strings.Split(strings.TrimSpace(r.stderr), "\n") // after the lines of its log: on a busy machine it may have waited
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &doc); err != nil || doc.Error == nil {
		t.Fatalf("got stderr %q, want an error document: %v", r.stderr, err)
	}
	if doc.Error.Code != code || doc.Error.WorkflowID != id || doc.Error.Message == "" {
		t.Fatalf("got %+v, want code %s about %q", doc.Error, code, id)
	}
	return doc.Error
}

func TestErrorDocumentOfWrongUsage(t *testing.T) {
	for _, args := range [][]string{{"start", "--json"}, {"--json", "nonsense"}, {"list", "--nonsense", "--json"}, {"list", "--json", "-o", "table"}, {"list", "--json=false", "-o", "json"}, {"completion", "-o", "json"}, {"list", "--nonsense", "--json=true"}, {"start", "--json=1"}} {
		r := command("", args...)
		r.want(t, cli.ExitUsage, "", "{")
		wantErrorDocument(t, r, schemas.CodeInvalid, "")
	}
	// After the end of the flags it is an argument.
	command("", "signal", "--", "a", "b", "--json").want(t, cli.ExitUsage, "", `drover: argument "--json" is too much`)
	command("", "start", "1", "true").want(t, cli.ExitUsage, "", "drover: argument")
	command("", "list", "--json=false", "--nonsense").want(t, cli.ExitUsage, "", "drover: unknown flag")
}

// What ends with the exit code of wrong usage says so in its document, too: the options of a server are judged where they are used.
func TestErrorDocumentOfWrongOptions(t *testing.T) {
	for _, args := range [][]string{{"server", "--memory", "--port", "-7", "--json"}, {"dev", "--max-payload", "-1", "-o", "json"}} {
		r := command("", args...)
		r.want(t, cli.ExitUsage, "", "{")
		wantErrorDocument(t, r, schemas.CodeInvalid, "")
	}
	text, doc := cli.DescribeError(&drover.WorkflowError{ID: "a", Run: "r", Status: schemas.StatusFailed, Reason: "no-room"})
	if want := `workflow "a" run r: failed: no-room`; text != "drover: "+want || doc.Message != want {
		t.Errorf("got %q and in the document %q, want %s, for people with the name of the program", text, doc.Message, want)
	}
	if _, doc := cli.DescribeError(&drover.Error{Op: "list", Err: fmt.Errorf("%w: %w", natsconn.ErrNoResponders, context.Canceled)}); doc.Code != schemas.CodeUnavailable {
		t.Errorf("got code %q of a command that was interrupted while nobody was there, want unavailable", doc.Code)
	}
	if _, doc := cli.DescribeError(&drover.Error{Op: "result", Err: context.Canceled}); doc.Code != schemas.CodeInternal { // such as a flow run that is interrupted
		t.Errorf("got code %q of what was interrupted, want %s", doc.Code, schemas.CodeInternal)
	}
	for _, err := range []error{topology.ErrInvalidOptions, claims.ErrInvalidOptions, nodes.ErrInvalidOptions, drover.ErrInvalid} {
		if _, doc := cli.DescribeError(fmt.Errorf("x: %w", err)); doc.Code != schemas.CodeInvalid {
			t.Errorf("%v: got code %s, want %s", err, doc.Code, schemas.CodeInvalid)
		}
	}
}

// A default is said once, and no help text has one that is empty.
func TestHelpOfDefaults(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if text := cmd.UsageString(); strings.Contains(text, "(default )") || strings.Contains(text, ") (default") {
			t.Errorf("%s: got\n%s", cmd.CommandPath(), text)
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(cli.NewApp(nil, nil, nil, commandGroups).Root())
}

// Every refusal of the service has its exit code, its words, its id and its way out.
func TestRefusals(t *testing.T) {
	s := newService(t)
	on(s, "describe", func(req schemas.ExecutionRequest) any {
		return schemas.DescribeResponse{Error: schemas.Errorf(schemas.Code(req.Run), "no way").WithHint("take a walk").About("a", "r7")}
	})
	for code, want := range map[schemas.Code]int{
		schemas.CodeInvalid: cli.ExitUsage, schemas.CodeNotFound: cli.ExitFailed, schemas.CodeAlreadyStarted: cli.ExitFailed,
		schemas.CodeClosed: cli.ExitFailed, schemas.CodeTooLarge: cli.ExitFailed, schemas.CodeUnsupported: cli.ExitFailed,
		schemas.CodeInternal: cli.ExitFailed, schemas.CodeConflict: cli.ExitFailed, schemas.CodePermission: cli.ExitFailed,
		schemas.CodeUnavailable: cli.ExitNoConnection, schemas.CodeTimeout: cli.ExitTimeout, "from_the_future": cli.ExitFailed,
	} {
		args := []string{"describe", "a", "--run", string(code)}
		if want == cli.ExitNoConnection || want == cli.ExitTimeout {
			args = append(args, "--timeout", "1s") // these are asked again until it is over
		} else {
			s.drover("", args...).want(t, want, "", `drover: describe "a" run r7: no way`, "\n  take a walk\n")
		}
		r := s.drover("", append(args, "--json")...)
		if e := wantErrorDocument(t, r, code, "a"); e.Run != "r7" || e.Hint != "take a walk" || e.Message != "no way" || r.code != want {
			t.Fatalf("%s: got %d, %+v", code, r.code, e)
		}
	}
}

// What a workflow, or who refuses, says in an error moves no cursor.
func TestHostileErrors(t *testing.T) {
	s := newService(t)
	on(s, "result", func(schemas.ExecutionRequest) any {
		return schemas.ResultResponse{Run: "r1", Status: schemas.StatusFailed, Reason: "red \x1b[31m\r"}
	})
	on(s, "describe", func(schemas.ExecutionRequest) any {
		return schemas.DescribeResponse{Error: schemas.Errorf(schemas.CodeNotFound, "red \x1b[31m").WithHint("take \x1b[32m a walk")}
	})
	for _, verb := range []string{"result", "describe"} {
		r := s.drover("", verb, "a")
		if r.code != cli.ExitFailed || !strings.Contains(r.stderr, "red") || strings.ContainsAny(r.stderr, "\x1b\r") {
			t.Errorf("%s: got %+v, want no control characters", verb, r)
		}
	}
}

// The exit codes that scripts rely on, each by a command line.
func TestExitCodesOfCommands(t *testing.T) {
	s := newService(t)
	status := schemas.StatusCompleted
	on(s, "result", func(schemas.ExecutionRequest) any { return schemas.ResultResponse{Run: "r1", Status: status} })
	on(s, "cancel", func(req schemas.ExecutionRequest) any {
		if req.WorkflowID == "silent" {
			return nil
		}
		return schemas.AckResponse{Error: schemas.Errorf(schemas.CodeClosed, "the run is closed")}
	})
	exits := func(want int, args ...string) {
		t.Helper()
		if r := s.drover("", args...); r.code != want {
			t.Fatalf("%v: got %d, want %d: %s", args, r.code, want, r.stderr)
		}
	}
	exits(0, "result", "a")
	status = schemas.StatusFailed
	exits(1, "result", "a")
	exits(1, "cancel", "a", "--run", "r1")
	exits(2, "result")
	exits(2, "result", "a", "--context", "nowhere")
	exits(3, "terminate", "a", "--run", "r1", "--timeout", "300ms") // nobody serves it
	if r := command("", "result", "a", "--nats", "nats://127.0.0.1:1"); r.code != 3 {
		t.Fatalf("got %d, want 3", r.code)
	}
	exits(4, "cancel", "silent", "--run", "r1", "--timeout", "300ms")
	status = schemas.StatusOpen
	exits(4, "result", "a", "--timeout", "300ms")
}
