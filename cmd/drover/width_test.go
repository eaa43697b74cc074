package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover/cmd/drover/cli"
)

// The flags of all commands, and what is told of the commands that keep a namespace going, fit a terminal of 80 columns.
func TestHelpFitsATerminal(t *testing.T) {
	s := newService(t)
	narrow := map[string]bool{
		"schedule": true, "always-on": true, "once": true, "operations": true, "recycle": true, "hold": true, "release": true,
	}
	var walk func(cmd *cobra.Command, path []string, all bool)
	walk = func(cmd *cobra.Command, path []string, all bool) {
		flags := false
		for line := range strings.Lines(s.drover("", append(path, "--help")...).stdout) {
			flags = flags || strings.HasSuffix(line, "lags:\n")
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 && (flags || all) {
				t.Errorf("drover %s --help: %d columns: %s", strings.Join(path, " "), n, line)
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub, append(path[:len(path):len(path)], sub.Name()), all || narrow[sub.Name()])
		}
	}
	walk(cli.NewApp(nil, nil, nil, commandGroups).Root(), nil, false)
}
