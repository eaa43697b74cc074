package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/cmd/drover/flows"
	"github.com/droverhq/drover/cmd/drover/namespaces"
	"github.com/droverhq/drover/schemas"
)

// What is wrong with a word of the command line is said once, with the flag, where in the word it is, and what would be right.
func TestWrongWords(t *testing.T) {
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	broken := file("broken.json", "\n{\"a\": 1,\n \"größe\": }")
	cut := file("cut.json", "{\"a\": 1,\n \"b\":\n")
	latin := file("latin.json", "[1,\n \"gr\xf6sse\"]")
	marked := file("marked.json", "\xef\xbb\xbf{}")
	t.Setenv("NATS_URL", "nats://127.0.0.1:1")
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"near flag":             {[]string{"start", "t", "--priorty", "3"}, "unknown flag: --priorty; did you mean --priority?"},
		"near global flag":      {[]string{"list", "--timout", "3"}, "unknown flag: --timout; did you mean --timeout?"},
		"beginning of flags":    {[]string{"start", "t", "--attr", "a=b"}, "unknown flag: --attr; did you mean --attribute?"},
		"a flag like no other":  {[]string{"list", "--frobnicate"}, "drover: unknown flag: --frobnicate\n"},
		"near type-version":     {[]string{"type", "delete", "workflow", "a", "--versoin", "1"}, "did you mean --version?"},
		"duration":              {[]string{"list", "--timeout", "-1"}, "drover: --timeout is \"-1\": want seconds (90, 0.5) or a time such as 1m30s, up to 292 years\n"},
		"duration or NONE":      {[]string{"start", "t", "--timeout-workflow", "soon"}, "drover: --timeout-workflow is \"soon\": want seconds (90, 0.5) or a time such as 1m30s, up to 292 years, or NONE\n"},
		"time":                  {[]string{"list", "--closed-after", "soon"}, "drover: --closed-after is \"soon\": want a time such as"},
		"output":                {[]string{"list", "-o", "xml"}, "drover: --output is \"xml\": use one of table, json, yaml\n"},
		"list with a quote":     {[]string{"worker", "--list", `a"b`}, `drover: --list is "a\"b": want one word, or several with commas between them`},
		"broken JSON":           {[]string{"start", "t", "--input", "@" + broken}, "broken.json is not JSON: line 3, column 11: invalid character '}'"},
		"JSON that ends":        {[]string{"start", "t", "--input", "@" + cut}, "cut.json is not JSON: line 2, column 6: it ends too early"},
		"JSON in one line":      {[]string{"signal", "a", "s", "--input", `{"a":1}{`}, "--input is not JSON: line 1, column 8: invalid character '{'"},
		"no JSON at all":        {[]string{"signal", "a", "s", "--input", ""}, "--input is not JSON: it is empty;"},
		"JSON in Latin-1":       {[]string{"start", "t", "--input", "@" + latin}, "latin.json is not JSON: line 2, column 5: the byte 0xf6 is not UTF-8"},
		"JSON with a mark":      {[]string{"start", "t", "--input", "@" + marked}, "marked.json is not JSON: line 1, column 1: it begins with a byte order mark"},
		"details":               {[]string{"terminate", "a", "--details", "tru"}, "--details is not JSON: line 1, column 4: it ends too early"},
		"input of flow run":     {[]string{"flow", "run", file("f.yaml", "steps:\n- log hi\n"), "--input", `{"a":`}, "--input is not JSON: line 1, column 6: it ends too early"},
		"attribute":             {[]string{"start", "t", "--attribute", "a"}, "drover: --attribute is \"a\": want NAME=VALUE\n"},
		"attribute of no name":  {[]string{"start", "t", "--attribute", "=a"}, "drover: --attribute is \"=a\": want NAME=VALUE\n"},
		"flow of no name":       {[]string{"flow", "show", ""}, "NAME is empty"},
		"graph of no name":      {[]string{"flow", "graph", ""}, "FILE or NAME is empty"},
		"lock of no name":       {[]string{"lock", "break", "", "--reason", "r"}, "LOCK is empty"},
		"dead of no reason":     {[]string{"dead", "--reason", ""}, "--reason is empty: say what is meant, or leave the flag out"},
		"help of no command":    {[]string{"help", "strat"}, `there is no command "strat"; did you mean start?`},
		"help of no subcommand": {[]string{"help", "flow", "nope"}, `there is no command "flow nope"`},
		"near command of flow":  {[]string{"flow", "lst"}, `there is no command "flow lst"; did you mean list?`},
		"no command of type":    {[]string{"type", "nope"}, `there is no command "type nope": use delete, deprecate, describe, list, register or undeprecate`},
		"command of auth":       {[]string{"auth", "bogus"}, `there is no command "auth bogus": use template`},
		"host with a scheme":    {[]string{"worker", "--list", "a", "--http-host", "https://example.com"}, `--http-host "https://example.com": want the name of a host alone`},
		"host with a port":      {[]string{"worker", "--list", "a", "--http-host", "example.com:80"}, `--http-host "example.com:80": want the name of a host alone`},
		"host with a star":      {[]string{"worker", "--list", "a", "--http-host", "*.example.com"}, `".example.com" means all below it`},
		"folder that is none":   {[]string{"worker", "--list", "a", "--load-dir", broken}, "--load-dir " + broken + ": it is no folder"},
		"folder that is absent": {[]string{"flow", "run", "x.yaml", "--load-dir", "/nowhere"}, "--load-dir /nowhere: no such file or directory"},
		"policies of a signal":  {[]string{"start", "t", "--id", "a", "--signal", "s", "--conflict-policy", "fail"}, "--conflict-policy is fail, but --signal goes to the open run: leave it out, or use terminate-existing to begin anew"},
	} {
		t.Run(name, func(t *testing.T) {
			command("", tt.args...).want(t, cli.ExitUsage, "", tt.want)
		})
	}
}

// Who asks for a namespace that does not exist, or that nobody serves, reads that the namespace may be what is wrong, and where its names are.
func TestWhoServesNobody(t *testing.T) {
	s := newService(t)
	s.drover("", "list", "--namespace", "zzz", "--timeout", "300ms").
		want(t, cli.ExitNoConnection, "", `nobody serves this namespace there: start "drover server"`, `"drover namespace list"`)
}

// The value of an attribute is all that stands after the first =, commas and quotes included.
func TestAttributesAreTakenAsTheyAre(t *testing.T) {
	s := newService(t)
	var got map[string]string
	on(s, "start", func(q schemas.StartRequest) any {
		got = q.Attributes
		return schemas.StartResponse{WorkflowID: q.WorkflowID, Run: "r1", Started: true}
	})
	s.drover("", "start", "t", "--id", "a", "--attribute", "query=a=1,b=2", "--attribute", `name="x"`, "--attribute", `say=it is="no",`, "--attribute", "none=").
		want(t, cli.ExitDone, "started a run r1\n")
	want := map[string]string{"query": "a=1,b=2", "name": `"x"`, "say": `it is="no",`, "none": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
}

// JSON may hold numbers that no float64 can: what decides may read them otherwise.
func TestInputOfLargeNumbers(t *testing.T) {
	s := newService(t)
	on(s, "start", func(q schemas.StartRequest) any {
		if string(q.Input) != `{"n": 1e400}` {
			t.Errorf("got %q", q.Input)
		}
		return schemas.StartResponse{WorkflowID: q.WorkflowID, Run: "r1", Started: true}
	})
	s.drover("", "start", "t", "--id", "a", "--input", ` {"n": 1e400} `).want(t, cli.ExitDone, "started a run r1\n")
}

// The way out of a refused start names flags; a type whose name is that of a field stays as it is.
func TestHintsOfRefusedStarts(t *testing.T) {
	s := newService(t)
	var refusal *schemas.Error
	on(s, "start", func(schemas.StartRequest) any { return schemas.StartResponse{Error: refusal} })
	for hint, want := range map[*schemas.Error]string{
		schemas.Errorf(schemas.CodeAlreadyStarted, "it is open").InField("workflowId").WithHint("or say with idConflictPolicy what is to happen"):             "with --conflict-policy what",
		schemas.Errorf(schemas.CodeAlreadyStarted, "it has been run").InField("workflowId").WithHint("or with idReusePolicy ALLOW"):                           "with --reuse-policy allow",
		schemas.Errorf(schemas.CodeInvalid, "not both").InField("idReusePolicy").WithHint("use idReusePolicy ALLOW"):                                          "use --reuse-policy allow",
		schemas.Errorf(schemas.CodeNotFound, "no such type").InField("workflowType").WithHint("drover type register workflow idConflictPolicy"):               "register workflow idConflictPolicy\n",
		schemas.Errorf(schemas.CodeInvalid, "deprecated").InField("workflowType").WithHint("drover type undeprecate workflow idConflictPolicy").About("", ""): "workflow idConflictPolicy\n",
	} {
		refusal = hint
		r := s.drover("", "start", "t", "--id", "a")
		if r.code == cli.ExitDone || !strings.Contains(r.stderr, want) {
			t.Errorf("got %+v, want %q", r, want)
		}
	}
}

func TestHelpNamesTypeVersion(t *testing.T) {
	for _, args := range []string{"type register", "type delete", "type describe", "type deprecate"} {
		if r := command("", append(strings.Fields(args), "--help")...); !strings.Contains(strings.Join(strings.Fields(r.stdout), " "), "or --type-version") {
			t.Errorf("%s: got %s", args, r.stdout)
		}
	}
}

// A context of the nats command line that cannot be read says where it is broken, and no name of a program.
func TestBrokenContextsSayWhere(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	if err := os.MkdirAll(filepath.Join(dir, "nats", "context"), 0o700); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"{\"url\": \"a\",\n":  "broken.json: line 1, column 13: it ends too early; mend it",
		"{\"url\": \"a\",\n]": "broken.json: line 2, column 1: invalid character ']'",
		"[]":                  "broken.json: line 1, column 1: all of it is of the kind array, which does not belong there; mend it",
		"{\n \"url\": 5}":     "url is of the kind number, which does not belong there; mend it",
	} {
		if err := os.WriteFile(filepath.Join(dir, "nats", "context", "broken.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := command("", "list", "--context", "broken")
		r.want(t, cli.ExitUsage, "", want)
		if strings.Contains(r.stderr, "natsContext") {
			t.Errorf("got %s", r.stderr)
		}
	}
}

// U11: one thing is told in the singular.
func TestOneIsSingular(t *testing.T) {
	for want, got := range map[string]string{
		"1 partition, 1 replica, storage file, limit none": namespaces.NamespaceWords(&schemas.NamespaceInfo{Partitions: 1, Replicas: 1, Storage: "file"}),
		"flow deploy: 1 file is wrong":                     flows.WrongFlows("flow deploy", 1, 1, "").Error(),
		"flow deploy: 1 file is wrong, of 3":               flows.WrongFlows("flow deploy", 1, 3, "").Error(),
		"flow deploy: 2 files are wrong, of 3":             flows.WrongFlows("flow deploy", 2, 3, "").Error(),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
