package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/cmd/drover/cli"
)

// Definitions that are made to hurt are refused, with a place and in few words, before anything of them is written out.
func TestFlowValidateHostile(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString("input:\n  a: &a [x, x, x, x, x, x, x, x, x, x]\n")
	for c := 'b'; c <= 'j'; c++ {
		fmt.Fprintf(&laughs, "  %c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 10), ", "))
	}
	laughs.WriteString("output: 1\n")
	for name, tc := range map[string]struct{ text, want string }{
		"a billion laughs":        {laughs.String(), "when its aliases are written out"},
		"deep brackets":           {strings.Repeat("[", 100_000), "nested deeper than 64"},
		"deep steps":              {strings.Repeat("[", 40) + "no-op" + strings.Repeat("]", 40), "steps are nested deeper than 20"},
		"deep lines":              {"- " + strings.Repeat("if ${x} then ", 4000) + "no-op", "steps are nested deeper than 20"},
		"deep parentheses":        {"- let x = " + strings.Repeat("( ", 10_000) + "1" + strings.Repeat(" )", 10_000), "the expression is too long"},
		"deep arms":               {"- 'let x = " + strings.Repeat("true ? ", 4000) + "1" + strings.Repeat(" : 2", 4000) + "'", "the expression is too long"},
		"deep conditions":         {"- {step: no-op, condition: " + strings.Repeat("{not: ", 60) + "1" + strings.Repeat("}", 61), "more than 32 predicates"},
		"many steps":              {strings.Repeat("- no-op\n", 1001), "more than 1000 steps"},
		"many steps by aliases":   {"- &a [" + strings.Repeat("no-op, ", 99) + "no-op]\n" + strings.Repeat("- *a\n", 100), "more than 1000 steps"},
		"a large pattern":         {"- {step: no-op, condition: {regex: '" + strings.Repeat("(a{1,100}){1,100}", 100) + "'}}", "more than 1024 bytes"},
		"many braces of a glob":   {"- {step: no-op, condition: {glob: '" + strings.Repeat("{a,b}", 10_000) + "'}}", "more than 1024 bytes"},
		"an alias of itself":      {"input: &a {b: *a}\noutput: 1", "no anchor"},
		"a type that uses itself": {"id: again\nsteps:\n- again\n", `there is no step type "again"`},
		"control characters":      {"- log \x1b]0;x\a", "U+001B"},
	} {
		t.Run(name, func(t *testing.T) {
			r := command(tc.text, "flow", "validate", "-")
			if r.code != cli.ExitFailed || !strings.Contains(r.stdout, tc.want) || !strings.Contains(r.stdout, "stdin:") {
				t.Errorf("got %d, %.1000q, %q, want a refusal with %q and its place", r.code, r.stdout, r.stderr, tc.want)
			}
			if len(r.stdout) > 4000 {
				t.Errorf("got %d bytes, want a few", len(r.stdout))
			}
		})
	}
}

// What a flow says of itself moves no cursor of who completes its name.
func TestCompletionOfHostileFlows(t *testing.T) {
	nats := embeddedtest.Serve(t, embedded.Options{Port: -1})
	if _, err := topology.Ensure(t.Context(), embeddedtest.Connect(t, nats), topology.Options{Memory: true, Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	flowFiles(t, map[string]string{"f.yaml": "name: f\ndescription: \"red \\e[31m\\nand\\tmore\"\nsteps: [no-op]\n"})
	command("", "flow", "deploy", "f.yaml", "--nats", nats.ClientURL()).done(t)
	r := command("", "__complete", "flow", "show", "--nats", nats.ClientURL(), "")
	if !strings.HasPrefix(r.stdout, "f\tred  [31m and more\n") {
		t.Errorf("got %q, want no control characters", r.stdout)
	}
}
