package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// wide runs a command line as on a terminal of so many columns; 0 is no terminal.
func (s *service) wide(columns int, args ...string) result {
	s.settle()
	defer s.settle()
	var out, err bytes.Buffer
	a := cli.NewApp(strings.NewReader(""), &out, &err, commandGroups)
	a.Columns = columns
	code := a.Execute(context.Background(), append(args, "--nats", s.url))
	return result{code, out.String(), err.String()}
}

// executions has a type, and so many workflows of it with long names, of which the last is a child.
func executions(n int) (all []schemas.ExecutionInfo) {
	for i := range n {
		all = append(all, schemas.ExecutionInfo{
			WorkflowID: fmt.Sprintf("order-%060d", i), Run: fmt.Sprintf("01M8DY3JC34C63Y8YV7RB7E%03d", i), Type: "order-of-the-shop", Status: schemas.StatusCompleted,
			StartedAt: at(0), ClosedAt: at(1.5), Events: 17,
		})
	}
	if n > 0 {
		all[n-1].Parent = &schemas.Execution{WorkflowID: all[0].WorkflowID, Run: all[0].Run}
	}
	return all
}

// serveList answers list and count as a broker does, and query and groups as an index.
func serveList(s *service, all []schemas.ExecutionInfo) {
	on(s, "list", func(q schemas.ListRequest) any {
		a := schemas.ListResponse{Executions: []schemas.ExecutionInfo{}}
		for _, e := range all {
			if (!q.TopLevel || e.Parent == nil) && len(a.Executions) < q.Limit {
				a.Executions = append(a.Executions, e)
			}
		}
		return a
	})
	on(s, "count", func(q schemas.CountRequest) any {
		n := 0
		for _, e := range all {
			if !q.TopLevel || e.Parent == nil {
				n++
			}
		}
		return schemas.CountResponse{Count: int64(n)}
	})
	match := func(filter string) (found []ops.FoundRun) {
		for _, e := range all {
			if !strings.Contains(filter, "parent IS NULL") || e.Parent == nil {
				found = append(found, ops.FoundRun{ExecutionInfo: e})
			}
		}
		return found
	}
	on(s, "query", func(q ops.QueryRequest) any {
		found := match(q.Filter)
		return ops.QueryResponse{Runs: found[:min(len(found), q.Limit)]}
	})
	on(s, "groups", func(q ops.GroupsRequest) any { return ops.GroupsResponse{Total: int64(len(match(q.Filter)))} })
}

// U4, R15: what a list has by default, what is said of the rest, and how wide it is.
func TestListByDefault(t *testing.T) {
	for _, tt := range []struct {
		runs, lines int // with the heads
		args, say   string
	}{
		{0, 0, "list", "no workflows\n"},
		{1, 0, "list", "no workflows; children are left out: --all\n"},
		{1, 2, "list --all", ""},
		{1, 2, "list --id x", ""},
		{1, 2, "list --parent x", ""},
		{51, 51, "list", ""},
		{52, 51, "list", "the first 50 are shown: --limit 0 shows all\n"},
		{60, 61, "list --limit 0 --all", ""},
		{60, 60, "list --limit 0", ""},
		{60, 6, "list --limit 5", "the first 5 are shown: --limit 0 shows all\n"},
		{60, 59, "list --json", ""},
		{60, 60, "list --json --all", ""},
		{60, 5, "list --json --limit 5", ""},
		{0, 0, "list --scan", "no workflows\n"},
		{1, 0, "list --scan", "no workflows; children are left out: --all\n"},
		{52, 51, "list --scan", "the first 50 are shown: --limit 0 shows all\n"},
		{1, 1, "count --scan", "children are left out: --all\n"},
		{0, 1, "count", ""},
		{1, 1, "count", "children are left out: --all\n"},
		{3, 1, "count", ""},
	} {
		s := newService(t)
		serveList(s, executions(tt.runs))
		for _, width := range []int{0, 80, 160} {
			r := s.wide(width, strings.Fields(tt.args)...)
			if r.code != cli.ExitDone || r.stderr != tt.say || strings.Count(r.stdout, "\n") != tt.lines {
				t.Errorf("%q of %d runs, width %d: got %d, %d lines, %q; want %d lines, %q", tt.args, tt.runs, width, r.code, strings.Count(r.stdout, "\n"), r.stderr, tt.lines, tt.say)
			}
			for line := range strings.Lines(r.stdout) {
				if n := utf8.RuneCountInString(line) - 1; width > 0 && n > width && !strings.Contains(tt.args, "json") {
					t.Errorf("%q: a line of %d columns on a terminal of %d: %s", tt.args, n, width, line)
				}
				if width == 0 && strings.Contains(line, "…") {
					t.Errorf("%q: a value is cut where no terminal is: %s", tt.args, line)
				}
			}
		}
	}
}

// U4: each list has a word for nothing, on stderr: stdout is empty, and with documents both are.
func TestEmptyListsSaySo(t *testing.T) {
	for _, tt := range []struct {
		args, want string
		serve      func(s *service)
	}{
		{"list", "no workflows", func(s *service) { serveList(s, nil) }},
		{"lock list", "no locks are held", func(s *service) {
			on(s, "locks", func(schemas.LocksRequest) any { return schemas.LocksResponse{} })
		}},
		{"tasklist list", "no task lists", func(s *service) {
			on(s, "lists", func(schemas.TaskListsRequest) any { return schemas.TaskListsResponse{} })
		}},
		{"dead", "no dead letters", func(s *service) {
			on(s, "dead", func(schemas.DeadRequest) any { return schemas.DeadResponse{} })
		}},
		{"dead --count", "no dead letters", func(s *service) {
			on(s, "dead", func(schemas.DeadRequest) any { return schemas.DeadResponse{} })
		}},
		{"type list", "no types", func(s *service) {
			on(s, "typeList", func(schemas.TypeListRequest) any { return schemas.TypeListResponse{} })
		}},
	} {
		s := newService(t)
		tt.serve(s)
		args := strings.Fields(tt.args)
		if r := s.wide(80, args...); r.code != cli.ExitDone || r.stdout != "" || !strings.HasPrefix(r.stderr, tt.want) {
			t.Errorf("%s: got %+v, want %q", tt.args, r, tt.want)
		}
		if r := s.wide(80, append(args, "--json")...); r.code != cli.ExitDone || r.stdout != "" || r.stderr != "" {
			t.Errorf("%s --json: got %+v, want nothing", tt.args, r)
		}
	}
}
