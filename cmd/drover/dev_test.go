package main

import (
	"context"
	"strings"
	"testing"

	"github.com/droverhq/drover/cmd/drover/cli"
)

// U13: dev says one line, with the next command to type and the flags that it needs; more only if that is asked for.
func TestDevSaysOneLine(t *testing.T) {
	for _, tt := range []struct {
		args []string
		many bool
	}{{nil, false}, {[]string{"--log-level", "info"}, true}} {
		ctx, stop := context.WithCancel(t.Context())
		stderr := newWatched("drover is ready", stop)
		code := execute(ctx, append([]string{"dev", "--port", "-1", "--namespace", "shop", "--node", "n"}, tt.args...), strings.NewReader(""), stderr, stderr)
		stop()
		text := stderr.String()
		_, next, ok := strings.Cut(text, "next, in another terminal: drover start hello --wait --nats nats://127.0.0.1:")
		if code != cli.ExitDone || !ok || !strings.Contains(next, " --namespace shop\n") || strings.Contains(text, `"level":"info"`) != tt.many {
			t.Errorf("%q: got %d\n%s", tt.args, code, text)
		}
	}
}

// U8: whoever names a namespace that is not there hears so at once: nobody is waited for.
func TestNoSuchNamespace(t *testing.T) {
	s := serving(t, memoryServer())
	for _, args := range []string{
		"list", "count", "start order", "signal a b", "describe a", "result a", "why a", "history a", "pause a", "resume a", "cancel a", "terminate a", "replay a",
		"retention explain a", "lock list", "tasklist list", "dead", "dead --count", "type list", "type describe workflow a", "resume --query type=x", "replay --query type=x", "audit", "verify", "claims",
		"start order --id x --signal go",
	} {
		r := command("", append(strings.Fields(args), "--namespace", "nosuch", "--nats", s.URL, "--timeout", "50s")...)
		if r.code != cli.ExitFailed || !strings.Contains(r.stderr, "nosuch") || strings.Contains(r.stderr, "no answer yet") || strings.Contains(r.stderr, "outcome is unknown") {
			t.Errorf("%s: got %+v, want that there is no such namespace", args, r)
		}
	}
}

// U11: what is wrong with a namespace is told by its flag.
func TestNamespaceFlagIsNamed(t *testing.T) {
	for _, args := range []string{"list", "server --memory", "dev", "worker", "node list", "start order"} {
		r := command("", append(strings.Fields(args), "--namespace", "a b")...)
		if r.code != cli.ExitUsage || !strings.Contains(r.stderr, "--namespace: ") || strings.Contains(r.stderr, "Options") || strings.Contains(r.stderr, "invalid id") {
			t.Errorf("%s: got %+v", args, r)
		}
	}
}
