package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/cmd/drover/flows"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/schemas"
)

// flowFiles writes files into a folder of their own and gives their paths in order of name.
func flowFiles(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	return dir
}

var someFlows = map[string]string{
	"greet.yaml": "id: greet\nshorthand: ${who}\nsteps:\n- log hello ${who}\n",
	"order.yaml": "name: order\ndescription: An order.\nparameters: {who: string}\nsteps:\n- id: begin\n  step: greet ${who}\n- {step: goto begin, condition: {target: '${x}', equals: 1}}\n",
	"wrong.yaml": "name: wrong\nsteps:\n- let x = (1\n- log ${a b}\n- frob\n- {step: log x, condition: {any: [{regex: '('}]}}\n",
}

const (
	wrongShown = "wrong.yaml:3:13: the let: the parenthesis is not closed (write ) after the group; put the text in quotes if it is not meant to be computed)\n" +
		"    2 | steps:\n    3 | - let x = (1\n      |             ^\n" +
		"wrong.yaml:4:10: the expression: \" b\" does not continue a path (between ${ and } stands a name or path only; operators work in let, outside the braces)\n" +
		"    3 | - let x = (1\n    4 | - log ${a b}\n      |          ^\n" +
		"wrong.yaml:5:3: there is no step type \"frob\" (register it as a step type, or use activity for an activity and child for a workflow)\n" +
		"    4 | - log ${a b}\n    5 | - frob\n      |   ^\n" +
		"wrong.yaml:6:43: the condition's any[0].regex: \"(\" is no regular expression: error parsing regexp: missing closing ): `(`\n" +
		"    5 | - frob\n    6 | - {step: log x, condition: {any: [{regex: '('}]}}\n      |                                           ^\n"
)

// No server is needed, every error is shown with its place, and the exit code tells.
func TestFlowValidate(t *testing.T) {
	flowFiles(t, someFlows)
	r := command("", "flow", "validate", "greet.yaml", "order.yaml")
	if r.code != cli.ExitDone || !strings.HasPrefix(r.stdout, "greet.yaml: step type greet, 1 step, version ") || !strings.Contains(r.stdout, "order.yaml: flow order, 2 steps, version ") {
		t.Fatalf("got %+v, want two valid files", r)
	}
	command("", "flow", "validate", "wrong.yaml").want(t, cli.ExitFailed, wrongShown, "flow validate: 1 file is wrong")
	r = command("", "flow", "validate", "order.yaml")
	r.want(t, cli.ExitFailed, r.stdout, "1 file is wrong")
	if !strings.Contains(r.stdout, `order.yaml:6:9: there is no step type "greet"`) {
		t.Fatalf("got %q, want that the type of the other file is not known", r.stdout)
	}
	command("name: a\nsteps: [no-op]\n", "flow", "validate", "-").want(t, cli.ExitDone, "stdin: flow a, 1 step, version 62c6b2c957be76f808490f1d9590b5ea\n")
	command("", "flow", "validate", "nowhere.yaml").want(t, cli.ExitUsage, "", "nowhere.yaml", "drover flow validate --help")
	command("", "flow", "validate").want(t, cli.ExitUsage, "", "FILE is missing")
	command("", "flow", "frob").want(t, cli.ExitUsage, "", `no command "flow frob"`)
	command("", "flow").want(t, cli.ExitUsage, "", "a command is missing")
	huge := strings.Repeat("- no-op\n", 200_000)
	r = command(huge, "flow", "validate", "-")
	r.want(t, cli.ExitFailed, r.stdout, "wrong")
	if len(r.stdout) > 1000 {
		t.Fatalf("got %d bytes about a file that is too large, want a few", len(r.stdout))
	}
}

func TestFlowValidateDocuments(t *testing.T) {
	flowFiles(t, someFlows)
	r := command("", "flow", "validate", "greet.yaml", "wrong.yaml", "--json")
	if r.code != cli.ExitFailed {
		t.Fatalf("got %+v, want exit code 1", r)
	}
	wantErrorDocument(t, r, schemas.CodeInvalid, "")
	var got []flows.FlowReport
	for line := range strings.Lines(r.stdout) {
		var one flows.FlowReport
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		got = append(got, one)
	}
	if len(got) != 2 || !got[0].Valid || got[0].Kind != "type" || got[0].Name != "greet" || got[0].Steps != 1 || len(got[0].Version) != 32 {
		t.Fatalf("got %+v, want a valid step type first", got)
	}
	if w := got[1]; w.Valid || len(w.Errors) != 4 || w.Errors[0].Line != 3 || w.Errors[0].Column != 13 || w.Errors[0].Hint == "" || !strings.Contains(w.Errors[0].Excerpt, "^") {
		t.Fatalf("got %+v, want four errors with their places", w)
	}
}

// What a file holds does not command the terminal.
func TestFlowErrorsAreHarmless(t *testing.T) {
	r := command("- \"log ${a\\e[2J b}\"\n- \"fr\\e]0;x\\a\"\n", "flow", "validate", "-")
	if r.code != cli.ExitFailed || strings.ContainsAny(r.stdout+r.stderr, "\x1b\a") {
		t.Fatalf("got %d, %q, %q, want no control characters", r.code, r.stdout, r.stderr)
	}
}

// What is allowed but hardly meant does not fail the file.
func TestFlowWarnings(t *testing.T) {
	flowFiles(t, map[string]string{
		"install.yaml": "id: install\nparameters: {package: string}\nsteps: [no-op]\n", "f.yaml": "name: f\nsteps:\n- type: install\n  colour: red\n",
	})
	r := command("", "flow", "validate", "install.yaml", "f.yaml")
	if r.code != cli.ExitDone || !strings.Contains(r.stdout, `warning: f.yaml:4:3: install has no parameter "colour" (its parameters are package)`) {
		t.Fatalf("got %+v, want a warning", r)
	}
	if r := command("", "flow", "validate", "install.yaml", "f.yaml", "--json"); r.code != cli.ExitDone || !strings.Contains(r.stdout, `"warnings":[{"line":4,"column":3,`) {
		t.Fatalf("got %+v, want a warning", r)
	}
}

func TestFlowSchema(t *testing.T) {
	command("", "flow", "schema").want(t, cli.ExitDone, string(model.Schema()))
	r := command("", "flow", "schema", "--json")
	var doc map[string]any
	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil || strings.Count(r.stdout, "\n") != 1 || doc["title"] != "Drover flow" {
		t.Fatalf("got %.200q, %v, want one line of JSON", r.stdout, err)
	}
}

func TestFlowGraphOfFile(t *testing.T) {
	dir := flowFiles(t, map[string]string{"a.yaml": "name: a\nsteps:\n- {id: x, step: log 1}\n- goto x\n", "wrong.yaml": someFlows["wrong.yaml"]})
	command("", "flow", "graph", "a.yaml").want(t, cli.ExitDone, "a\n├─ [x] log 1\n└─ goto → x\n")
	command("", "flow", "graph", "./a.yaml", "--svg", "a.svg").want(t, cli.ExitDone, "wrote a.svg\n")
	svg, err := os.ReadFile(filepath.Join(dir, "a.svg"))
	if err != nil || !strings.HasPrefix(string(svg), "<svg ") || !strings.Contains(string(svg), "goto → x") {
		t.Fatalf("got %.100q, %v, want a picture", svg, err)
	}
	command("", "flow", "graph", "a.yaml", "--json").want(t, cli.ExitDone,
		`{"kind":"flow","label":"a","below":[{"kind":"step","ref":"0","type":"log","id":"x","label":"log 1"},{"kind":"step","ref":"1","type":"goto","label":"goto","jump":"x","target":"0"}]}`+"\n")
	command("", "flow", "graph", "wrong.yaml").want(t, cli.ExitFailed, "", "wrong.yaml:3:13", "wrong.yaml:6:43")
	command("", "flow", "graph", "a.yaml", "--version", "1").want(t, cli.ExitUsage, "", "--version and --step-type are for deployed flows")
	command("", "flow", "graph").want(t, cli.ExitUsage, "", "FILE or NAME is missing")
}

// newFlows is a server with the streams of a namespace.
func newFlows(t *testing.T) *service {
	t.Helper()
	s := newService(t)
	if _, err := topology.Ensure(t.Context(), s.conn, topology.Options{Memory: true, Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFlowDeploy(t *testing.T) {
	flowFiles(t, someFlows)
	s := newFlows(t)
	wrote := func() uint64 {
		seq, err := s.conn.StreamLastSeq(t.Context(), "KV_"+subject.Namespace("default").BucketFlows())
		if err != nil {
			t.Fatal(err)
		}
		return seq
	}
	r := s.drover("", "flow", "deploy", "greet.yaml", "wrong.yaml")
	r.want(t, cli.ExitFailed, wrongShown, "1 file is wrong, of 2, so nothing was deployed")
	for name, text := range map[string]string{"again.yaml": someFlows["order.yaml"] + "- no-op\n", "greets.yaml": someFlows["greet.yaml"]} {
		if err := writeFile(name, text); err != nil {
			t.Fatal(err)
		}
	}
	s.drover("", "flow", "deploy", "greet.yaml", "order.yaml", "again.yaml").want(t, cli.ExitFailed, "", "order.yaml and again.yaml both define flow order, so nothing was deployed", "another name")
	s.drover("", "flow", "deploy", "greet.yaml", "greets.yaml", "--dry-run").want(t, cli.ExitFailed, "", "greet.yaml and greets.yaml both define step type greet, so nothing was deployed")
	r = s.drover("", "flow", "deploy", "greet.yaml", "order.yaml", "--dry-run")
	if r.code != cli.ExitDone || !strings.HasPrefix(r.stdout, "would deploy step type greet: version ") || !strings.Contains(r.stdout, "would deploy flow order: version ") || wrote() != 0 {
		t.Fatalf("got %+v and %d writes, want a plan only", r, wrote())
	}
	r = s.drover("", "flow", "deploy", "greet.yaml", "order.yaml")
	if r.code != cli.ExitDone || !strings.HasPrefix(r.stdout, "deployed step type greet: version ") || !strings.HasSuffix(r.stdout, ", before that none\n") {
		t.Fatalf("got %+v, want both deployed", r)
	}
	first := strings.Fields(r.stdout)[len(strings.Fields(r.stdout))-4]
	first = strings.TrimSuffix(first, ",")
	// The type is registered now, so the flow needs its file no more; validate asks only if it is told to.
	s.drover("", "flow", "deploy", "order.yaml").want(t, cli.ExitDone, "flow order is unchanged: version "+first+"\n")
	if r := s.drover("", "flow", "validate", "order.yaml", "--registered"); r.code != cli.ExitDone || !strings.Contains(r.stdout, first) {
		t.Fatalf("got %+v, want version %s", r, first)
	}
	if err := writeFile("order.yaml", someFlows["order.yaml"]+"- no-op\n"); err != nil {
		t.Fatal(err)
	}
	var doc flows.Deployment
	r = s.drover("", "flow", "deploy", "order.yaml", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil || r.code != cli.ExitDone {
		t.Fatalf("got %+v, %v", r, err)
	}
	if doc.Kind != "flow" || doc.Name != "order" || doc.Previous != first || !doc.Changed || !doc.Stored || doc.Version == first || doc.File != "order.yaml" {
		t.Fatalf("got %+v, want a second version", doc)
	}
	if err := writeFile("order.yaml", someFlows["order.yaml"]); err != nil {
		t.Fatal(err)
	}
	s.drover("", "flow", "deploy", "order.yaml").want(t, cli.ExitDone, "deployed flow order: back to version "+first+", before that "+doc.Version+"\n")
	s.drover("- no-op", "flow", "deploy", "-").want(t, cli.ExitFailed, "", "the flow has no name", "write name: …")
	s.drover("", "flow", "deploy", "order.yaml", "--namespace", "nowhere").want(t, cli.ExitFailed, "", "keeps no flows")
}

func TestFlowListAndShow(t *testing.T) {
	flowFiles(t, someFlows)
	s := newFlows(t)
	s.drover("", "flow", "list").want(t, cli.ExitDone, "", "no flows")
	s.drover("", "flow", "deploy", "greet.yaml", "order.yaml").done(t)
	if _, err := s.conn.KVCreate(t.Context(), subject.Namespace("default").BucketFlows(), "flow.bad.current", []byte("{"), 0); err != nil {
		t.Fatal(err)
	}
	r := s.drover("", "flow", "list")
	rows := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if r.code != cli.ExitDone || len(rows) != 4 {
		t.Fatalf("got %+v, want a head and three rows", r)
	}
	var first []string
	for _, row := range rows {
		first = append(first, strings.Join(strings.Fields(row)[:2], " "))
	}
	if want := []string{"KIND NAME", "flow bad", "flow order", "type greet"}; !slices.Equal(first, want) || !strings.Contains(rows[1], "key flow.bad.current: it is no JSON") || !strings.Contains(rows[2], "An order.") {
		t.Fatalf("got %q, want %q", rows, want)
	}
	var entries []flows.FlowEntry
	for line := range strings.Lines(s.drover("", "flow", "list", "--json").stdout) {
		var e flows.FlowEntry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	if len(entries) != 3 || entries[0].Error == "" || entries[1].Steps != 2 || entries[1].DeployedAt == 0 || entries[2].Kind != "type" {
		t.Fatalf("got %+v", entries)
	}
	version := entries[1].Version
	r = s.drover("", "flow", "show", "order")
	for _, want := range []string{"name:        order\n", "version:     " + version, "versions:    1\n", "description: An order.\n", "parameter:   who string\n", "step type:   greet version " + entries[2].Version, "├─ [begin] greet ${who}\n└─ goto → begin  ("} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("got %s, want it to hold %q", r.stdout, want)
		}
	}
	s.drover("", "flow", "show", "order", "--version", version[:6]).want(t, cli.ExitDone, r.stdout)
	if r := s.drover("", "flow", "show", "greet", "--step-type"); r.code != cli.ExitDone || !strings.Contains(r.stdout, "shorthand:   ${who}\n") {
		t.Fatalf("got %+v", r)
	}
	var doc flows.FlowDocument
	if err := json.Unmarshal([]byte(s.drover("", "flow", "show", "order", "--json").stdout), &doc); err != nil || doc.Version != version || len(doc.Versions) != 1 || !strings.Contains(string(doc.Definition), `"id":"begin"`) {
		t.Fatalf("got %+v, %v", doc, err)
	}
	r = s.drover("", "flow", "show", "nobody")
	r.want(t, cli.ExitFailed, "", `there is no flow "nobody"`, "drover flow list")
	s.drover("", "flow", "graph", "order").want(t, cli.ExitDone, "order  (parameters who)\n├─ [begin] greet ${who}\n└─ goto → begin  (if {\"equals\":1,\"target\":\"${x}\"})\n")
	if got := completed(t, command("", "__complete", "--nats", s.url, "flow", "show", "or")); !slices.Equal(got, []string{"order"}) {
		t.Fatalf("got %v, want order", got)
	}
}

func writeFile(name, text string) error { return os.WriteFile(name, []byte(text), 0o600) }
