package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

func TestOutputs(t *testing.T) {
	s := newService(t)
	runs := []schemas.ExecutionInfo{
		{WorkflowID: "order-17", Run: "r1", Type: "order", Status: schemas.StatusOpen, StartedAt: at(0), Events: 17, Tags: []string{"yes", "x y"}},
		{WorkflowID: "17", Run: "r2", Type: "order", Status: schemas.StatusTimedOut, StartedAt: at(1), ClosedAt: at(3700.5), Events: 1234, Parent: &schemas.Execution{WorkflowID: "p", Run: "r0"}},
	}
	on(s, "query", func(ops.QueryRequest) any {
		return ops.QueryResponse{Runs: []ops.FoundRun{{ExecutionInfo: runs[0]}, {ExecutionInfo: runs[1]}}}
	})
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
	table.want(t, cli.ExitDone, s.drover("", "list").stdout)
	for name, args := range map[string][]string{
		"list.yaml.golden": {"list"}, "describe.yaml.golden": {"describe", "order-17"}, "history.yaml.golden": {"history", "order-17"},
	} {
		r := s.drover("", append(args, "--output", "yaml")...)
		r.want(t, cli.ExitDone, r.stdout)
		golden(t, name, r.stdout)
		want, got := s.drover("", append(args, "-o", "json")...).stdout, yamlToJSON(t, r.stdout)
		if want != s.drover("", append(args, "--json")...).stdout {
			t.Fatalf("%v: --json and -o json differ", args)
		}
		if diff := cmp.Diff(documents(t, want), documents(t, got)); diff != "" {
			t.Fatalf("%v: YAML and JSON differ: %s", args, diff)
		}
	}
	s.drover("", "describe", "nobody", "-o", "yaml").want(t, cli.ExitFailed, "", "error:\n  code: not_found\n  message: no such workflow\n  hint: drover list\n  workflowId: nobody\n")
	command("", "start", "-oyaml").want(t, cli.ExitUsage, "", "error:\n  code: invalid_argument\n")
	wantErrorDocument(t, command("", "start", "-o", "json"), schemas.CodeInvalid, "")
	wantErrorDocument(t, command("", "start", "-o=json"), schemas.CodeInvalid, "")
	command("", "version", "-o", "yaml").want(t, cli.ExitDone, command("", "version", "--output=yaml").stdout)
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
		if err := cli.WriteJSON(&lines, v); err != nil {
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
