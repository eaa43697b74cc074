package modules

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/examples"
)

// top is the folder of the example.
const top = "signup"

func InitCommand(a *cli.App) *cobra.Command {
	var source string
	cmd := &cobra.Command{
		Use:   "init NAME",
		Short: "Make a Go module with a workflow",
		Long: `Make a Go module with a workflow in a new directory: contracts, a workflow, an
activity, a worker, and a test in virtual time. They run as they are.

NAME is the path of the module, and its last word is the directory. A NAME
without a / is made example.com/NAME.

It needs the go command. As long as there is no release, the module uses the
clone of Drover that this program was built in, or else the one around the
working directory. It has the path of the clone in its go.mod.`,
		Example: `  drover init signup
  drover init github.com/ada/signup --source ~/drover`,
		Args: cli.Filled("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := named(args[0])
			if err != nil {
				return cli.Usage(cmd, err)
			}
			from, err := find(source)
			if err != nil {
				return cli.Usage(cmd, err)
			}
			if _, err := exec.LookPath("go"); err != nil {
				return errors.New("the go command is not in the PATH; see https://go.dev/dl")
			}
			if err := m.write(); err != nil {
				return cli.Usage(cmd, err)
			}
			if err := m.tidy(cmd.Context(), from); err != nil {
				return err
			}
			return m.say(a, from)
		},
	}
	cmd.Flags().StringVar(&source, "source", "", "a clone of Drover for the module to use")
	return cmd
}

// module is what is made.
type module struct{ path, dir string }

// A path of a module, as far as all systems and package registries take it.
var (
	element = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$`)
	host    = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*(\.[a-z0-9-]+)+$`)
	major   = regexp.MustCompile(`^v[0-9]+$`)
)

// named returns the module of a name, or what is wrong with the name.
func named(name string) (*module, error) {
	all := strings.Split(name, "/")
	if len(all) == 1 {
		all = []string{"example.com", name}
	}
	last := all[len(all)-1]
	for _, e := range all {
		if !element.MatchString(e) || e == "vendor" {
			return nil, fmt.Errorf("NAME is %q: want the path of a module, such as signup or "+
				"github.com/ada/signup", name)
		}
	}
	switch {
	case !host.MatchString(all[0]):
		return nil, fmt.Errorf("NAME is %q: the path of a module begins with a host, such as "+
			"github.com; or give one word", name)
	case major.MatchString(last):
		return nil, fmt.Errorf("NAME is %q: it ends like a version", name)
	}
	return &module{path: strings.Join(all, "/"), dir: last}, nil
}

// write copies the example into the module's directory, which must not have anything.
func (m *module) write() error {
	switch has, err := os.ReadDir(m.dir); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is there already, and is no directory", m.dir)
	case len(has) > 0:
		return fmt.Errorf("%s is there already, and is not empty", m.dir)
	}
	return fs.WalkDir(examples.Signup, top, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(m.dir, filepath.FromSlash(strings.TrimPrefix(name, top)))
		if d.IsDir() {
			return os.MkdirAll(to, 0o777)
		}
		text, err := fs.ReadFile(examples.Signup, name)
		if err != nil {
			return err
		}
		renamed := strings.ReplaceAll(string(text), drover+"/examples/"+top, m.path)
		return os.WriteFile(to, []byte(renamed), 0o666)
	})
}

// tidy makes go.mod and go.sum, by the go command.
func (m *module) tidy(ctx context.Context, from *origin) error {
	for _, args := range [][]string{
		{"mod", "init", m.path},
		append([]string{"mod", "edit"}, from.edit()...),
		{"mod", "tidy"},
	} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = m.dir
		if said, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s is made, but %q has failed in it (%w): %s", m.dir,
				strings.Join(cmd.Args, " "), err, bytes.TrimSpace(said))
		}
	}
	return nil
}

// say tells what to type next.
func (m *module) say(a *cli.App, from *origin) error {
	if a.JSON {
		return a.Document(struct {
			Module    string `json:"module"`
			Directory string `json:"directory"`
			Drover    string `json:"drover"`
		}{m.path, m.dir, cmp.Or(from.version, from.dir)})
	}
	return a.Say(`made %s, with Drover %s
next, each in a terminal of its own:

  drover dev
  cd %s && go test ./... && go run .
  drover start signup --id ada --input '"ada@example.com"'

%s says more`, m.dir, from, m.dir, filepath.Join(m.dir, "README.md"))
}
