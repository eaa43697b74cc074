package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/droverhq/drover/schemas"
)

func TestYAML(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{"b":1,"a":[1,"x",{"y":[]}],"c":{}}`, "b: 1\na:\n  - 1\n  - x\n  - \"y\": []\nc: {}\n"},
		{`{"n":9223372036854775807,"u":18446744073709551615,"f":0.5,"t":true,"z":null}`, "\"n\": 9223372036854775807\nu: 18446744073709551615\nf: 0.5\nt: true\nz: null\n"},
		{`["yes","On","12:30:45","1e3","0x1f","017",".inf","null","~","2026-01-02","","<<","="]`, `- "yes"
- "On"
- "12:30:45"
- "1e3"
- "0x1f"
- "017"
- ".inf"
- "null"
- "~"
- "2026-01-02"
- ""
- "<<"
- "="
`},
		{`["\u001b[31m","a\u0000b","---","line 1\nline 2\n"]`, "- \"\\e[31m\"\n- \"a\\0b\"\n- '---'\n- |\n  line 1\n  line 2\n"},
		{`"x"`, "x\n"},
		{`null`, "null\n"},
	} {
		var b bytes.Buffer
		if err := writeYAML(&b, json.RawMessage(tt.in)); err != nil {
			t.Fatalf("%s: %v", tt.in, err)
		}
		if diff := cmp.Diff(tt.want, b.String()); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", tt.in, diff)
		}
	}
}

// Whatever JSON there is, its YAML reads as the same, and holds nothing that moves a terminal's cursor.
func FuzzYAML(f *testing.F) {
	for _, s := range []string{`{"a":[1,null,true,"x",{"b":-0.5e-3}]}`, `"\ud83d\ude00 \u0085\u2028\ufeff"`, `["- a","a: b # c"," x ","\ta","a\r\nb","%","@","&a","*a","!a","|",">\n a"]`, `{"":{"":""}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want any
		if json.Unmarshal([]byte(s), &want) != nil {
			return
		}
		var b bytes.Buffer
		if err := writeYAML(&b, want); err != nil {
			t.Fatal(err)
		}
		if i := bytes.IndexFunc(b.Bytes(), func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 }); i >= 0 {
			t.Fatalf("%q: got a control character in %q", s, b.Bytes())
		}
		var got any
		if err := yaml.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatalf("%q: %q cannot be read: %v", s, b.Bytes(), err)
		}
		// Numbers by way of JSON, which knows one kind.
		back, err := json.Marshal(got)
		if err != nil {
			t.Fatalf("%q: %q became %#v: %v", s, b.Bytes(), got, err)
		}
		var again any
		if err := json.Unmarshal(back, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, again); diff != "" {
			t.Fatalf("%q: %q (-want +got):\n%s", s, b.Bytes(), diff)
		}
	})
}

func TestOutputs(t *testing.T) {
	s := newService(t)
	runs := []schemas.ExecutionInfo{
		{WorkflowID: "order-17", Run: "r1", Type: "order", Status: schemas.StatusOpen, StartedAt: at(0), Events: 17, Tags: []string{"yes", "x y"}},
		{WorkflowID: "17", Run: "r2", Type: "order", Status: schemas.StatusTimedOut, StartedAt: at(1), ClosedAt: at(3700.5), Events: 1234, Parent: &schemas.Execution{WorkflowID: "p", Run: "r0"}},
	}
	on(s, "list", func(schemas.ListRequest) any { return schemas.ListResponse{Executions: runs} })
	on(s, "describe", func(req schemas.ExecutionRequest) any {
		if req.WorkflowID == "nobody" {
			return schemas.DescribeResponse{Error: schemas.Errorf(schemas.CodeNotFound, "no such workflow").WithHint("drover list").About("nobody", "")}
		}
		return schemas.DescribeResponse{V: 1, Execution: runs[0], Input: schemas.Payload(`{"text":"line 1\nline 2\n","n":1}`), LatestContext: schemas.Payload{0xff}}
	})
	all := sample()
	on(s, "history", func(schemas.HistoryRequest) any {
		return schemas.HistoryResponse{Run: "r1", Events: all[:2], Closed: true}
	})

	table := s.drover("", "list", "-o", "table")
	table.want(t, exitDone, s.drover("", "list").stdout)
	for name, args := range map[string][]string{
		"list.yaml.golden": {"list"}, "describe.yaml.golden": {"describe", "order-17"}, "history.yaml.golden": {"history", "order-17"},
	} {
		r := s.drover("", append(args, "--output", "yaml")...)
		r.want(t, exitDone, r.stdout)
		golden(t, name, r.stdout)
		want, got := s.drover("", append(args, "-o", "json")...).stdout, yamlToJSON(t, r.stdout)
		if want != s.drover("", append(args, "--json")...).stdout {
			t.Fatalf("%v: --json and -o json differ", args)
		}
		if diff := cmp.Diff(documents(t, want), documents(t, got)); diff != "" {
			t.Fatalf("%v: YAML and JSON differ: %s", args, diff)
		}
	}
	s.drover("", "describe", "nobody", "-o", "yaml").want(t, exitFailed, "", "error:\n  code: not_found\n  message: no such workflow\n  hint: drover list\n  workflowId: nobody\n")
	command("", "start", "-oyaml").want(t, exitUsage, "", "error:\n  code: invalid_argument\n")
	wantErrorDocument(t, command("", "start", "-o", "json"), schemas.CodeInvalid, "")
	wantErrorDocument(t, command("", "start", "-o=json"), schemas.CodeInvalid, "")
	command("", "version", "-o", "yaml").want(t, exitDone, command("", "version", "--output=yaml").stdout)
}

// yamlToJSON turns documents into lines.
func yamlToJSON(t *testing.T, s string) string {
	t.Helper()
	var lines strings.Builder
	d := yaml.NewDecoder(strings.NewReader(s))
	for range strings.Count(s, "\n---\n") + 1 {
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		if err := writeJSON(&lines, v); err != nil {
			t.Fatal(err)
		}
	}
	return lines.String()
}

func documents(t *testing.T, lines string) (all []any) {
	t.Helper()
	for line := range strings.Lines(lines) {
		var v any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}
