package main

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/cmd/drover/modules"
)

// What init refuses it refuses before it writes anything.
func TestInitRefuses(t *testing.T) {
	clone, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.MkdirAll("full/of", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"":                   "NAME is empty",
		"full":               "full is there already, and is not empty",
		"file":               "file is there already, and is no directory",
		".":                  `NAME is "."`,
		"../up":              `NAME is "../up"`,
		"a b":                `NAME is "a b"`,
		"größe":              `NAME is "größe"`,
		"-x.com/a":           `NAME is "-x.com/a"`,
		"github.com/":        `NAME is "github.com/"`,
		"github.com/vendor":  "want the path of a module, such as signup or",
		"a/b":                "begins with a host",
		"GitHub.com/a":       "begins with a host",
		"github.com/a/b/v2":  "ends like a version",
		"github.com/a/b.":    `NAME is "github.com/a/b."`,
		"github.com/a/b;c":   `NAME is "github.com/a/b;c"`,
		"github.com/a/../..": `NAME is "github.com/a/../.."`,
	} {
		command("", "init", "--source", clone, "--", name).want(t, cli.ExitUsage, "", want)
	}
	command("", "init").want(t, cli.ExitUsage, "", "NAME is missing")
	command("", "init", "a", "--source", dir).want(t, cli.ExitUsage, "", "that is no clone of Drover")
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("got %v, %v; want nothing new", left, err)
	}
}

// A program that was downloaded, or is a release, gives new modules its own version.
func TestInitKnowsReleases(t *testing.T) {
	const path = "github.com/droverhq/drover"
	for want, m := range map[string]debug.Module{
		"v1.2.3":                             {Path: path, Version: "v1.2.3"},
		"v0.0.0-20261129000000-0123456789ab": {Path: path, Version: "v0.0.0-20261129000000-0123456789ab", Sum: "h1:x="},
	} {
		if got := modules.Released(&m); got != want {
			t.Errorf("%+v: got %q, want %q", m, got, want)
		}
	}
	for _, m := range []debug.Module{
		{Path: path, Version: "(devel)"},
		{Path: path, Version: "v1.2.3+dirty"},
		{Path: path, Version: "v0.0.0-20261129000000-0123456789ab"}, // of a clone
		{Path: "example.com/other", Version: "v1.2.3"},
	} {
		if got := modules.Released(&m); got != "" {
			t.Errorf("%+v: got %q, want none", m, got)
		}
	}
}
