package main

import (
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// completed is what the shell is offered: the lines without descriptions and without cobra's directive.
func completed(t *testing.T, r result) []string {
	t.Helper()
	if r.code != cli.ExitDone {
		t.Fatalf("got exit code %d, want 0, stderr %q", r.code, r.stderr)
	}
	// Cobra itself says on stderr which directive it gave; the scripts drop that.
	for line := range strings.Lines(r.stderr) {
		if !strings.HasPrefix(line, "Completion ended with directive") {
			t.Fatalf("got stderr %q, want no word to the shell", r.stderr)
		}
	}
	var names []string
	for line := range strings.Lines(r.stdout) {
		if strings.HasPrefix(line, ":") {
			if line != ":4\n" {
				t.Fatalf("got directive %q, want 4: no files", line)
			}
			continue
		}
		name, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		names = append(names, name)
	}
	return names
}

func TestCompletion(t *testing.T) {
	s := newService(t)
	var asked schemas.ListRequest
	on(s, "list", func(req schemas.ListRequest) any {
		asked = req
		var found []schemas.ExecutionInfo
		for _, id := range []string{"order-1", "order-2", "order-2", "order $(reboot)", "order-`x`", "other", "orde\u0301r", "-order"} {
			if strings.HasPrefix(id, req.Prefix) {
				found = append(found, schemas.ExecutionInfo{WorkflowID: id, Run: "r", Type: "cart", Status: schemas.StatusOpen})
			}
		}
		return schemas.ListResponse{Executions: found}
	})
	on(s, "typeList", func(req schemas.TypeListRequest) any {
		return schemas.TypeListResponse{Types: []schemas.TypeInfo{{Kind: schemas.WorkflowKind, Name: "claim", Description: "line 1\nline 2"}}}
	})
	on(s, "lists", func(schemas.TaskListsRequest) any {
		return schemas.TaskListsResponse{Lists: []schemas.TaskListInfo{{List: "PCI"}, {List: "words"}}}
	})
	on(s, "scheduleList", func(req ops.ScheduleListRequest) any {
		return ops.ScheduleListResponse{Schedules: []ops.ScheduleLine{{Schedule: ops.Schedule{ID: "nightly"}}}}
	})
	on(s, "alwaysList", func(req ops.AlwaysListRequest) any {
		start := schemas.StartRequest{WorkflowID: "poller", Type: "poll"}
		return ops.AlwaysListResponse{AlwaysOn: []ops.AlwaysOnRecord{{AlwaysOn: ops.AlwaysOn{Start: start}}}}
	})
	if _, err := s.conn.Subscribe(schemas.NamespaceSubject("list"), "", func(m natsconn.Msg) {
		body, err := schemas.MarshalJSON(schemas.NamespaceListResponse{Namespaces: []schemas.NamespaceInfo{{Name: "default"}, {Name: "shop"}}})
		if err == nil {
			err = m.Respond(nil, body)
		}
		if err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	contexts(t, "", map[string]string{"home": "{}", "work": "{}"})
	for _, tt := range []struct {
		args string
		want string
	}{
		{"describe order", "order-1 order-2"},
		{"signal o", "order-1 order-2 other"},
		{"signal order-1 r", ""},
		{"terminate order-2", "order-2"},
		{"start c", "claim cart"},
		{"start x", ""},
		{"type describe w", "workflow"},
		{"type describe workflow ", "claim"},
		{"type describe workflow claim ", ""},
		{"start t --list ", "PCI words"},
		{"list --id orde", "order-1 order-2"},
		{"list --namespace s", "shop"},
		{"list --status c", "completed canceled continuedAsNew closed"},
		{"list --context ", "home work"},
		{"list -o ", "table json yaml"},
		{"namespace delete ", "default shop"},
		{"schedule pause n", "nightly"},
		{"schedule trigger nightly --overlap buffer", "bufferOne bufferAll"},
		{"always-on stop p", "poller"},
		{"always-on add p --restart on", "on-failure"},
	} {
		args := append([]string{"__complete", "--nats", s.url}, strings.Split(tt.args, " ")...)
		s.settle()
		r := command("", args...)
		s.settle()
		if got := strings.Join(completed(t, r), " "); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.args, got, tt.want)
		}
	}
	for args, want := range map[string]schemas.Status{"signal o": schemas.StatusOpen, "resume o": schemas.StatusPaused, "why o": ""} {
		s.settle()
		command("", append([]string{"__complete", "--nats", s.url}, strings.Fields(args)...)...)
		s.settle()
		if asked.Status != want || asked.Prefix != "o" {
			t.Errorf("%s: asked for %+v, want status %q", args, asked, want)
		}
	}
}

// Whatever is wrong, the shell hears nothing of it, and soon.
func TestCompletionWithoutAnswer(t *testing.T) {
	s := newService(t)
	on(s, "list", func(schemas.ListRequest) any { return nil })
	for _, args := range [][]string{
		{"describe", "--nats", "nats://127.0.0.1:1", "o"},
		{"describe", "--nats", s.url, "o"},
		{"start", "--nats", s.url, "o"},
		{"describe", "--context", "nowhere", "o"},
		{"describe", "--namespace", "a.b", "--nats", s.url, "o"},
		{"describe", "--log-level", "loud", "--nats", s.url, "o"},
	} {
		began := time.Now()
		if got := completed(t, command("", append([]string{"__complete"}, args...)...)); len(got) > 0 {
			t.Errorf("%v: got %v", args, got)
		}
		if took := time.Since(began); took > 4*cli.CompleteTime {
			t.Errorf("%v: took %v", args, took)
		}
	}
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		r := command("", "completion", shell)
		if r.code != cli.ExitDone || r.stderr != "" || !strings.Contains(r.stdout, "__complete") {
			t.Errorf("%s: got %d, stderr %q, stdout %.80q", shell, r.code, r.stderr, r.stdout)
		}
	}
}
