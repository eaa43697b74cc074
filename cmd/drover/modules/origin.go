package modules

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
)

// drover is the path of the module of Drover.
const drover = "github.com/droverhq/drover"

// origin is where a new module gets Drover from: a version, or a clone.
type origin struct{ version, dir string }

// String is the origin in words.
func (o *origin) String() string {
	if o.dir != "" {
		return "of " + o.dir
	}
	return o.version
}

// edit are the arguments for "go mod edit".
func (o *origin) edit() []string {
	if o.dir != "" {
		return []string{"-replace", drover + "=" + o.dir}
	}
	return []string{"-require", drover + "@" + o.version}
}

// find returns the clone that is given, or else what this program was made of. So the module and
// the server that runs beside it are the same Drover: a release if the program is one, or was
// downloaded as a module; else the clone that has the program in it, as make leaves it, or the
// working directory, as with go run. A program keeps no path of its source, since it is built with
// -trimpath.
func find(source string) (*origin, error) {
	if source != "" {
		dir, err := filepath.Abs(source)
		if err == nil && !isClone(dir) {
			err = fmt.Errorf("--source is %q: that is no clone of Drover", source)
		}
		return &origin{dir: dir}, err
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := Released(&info.Main); v != "" {
			return &origin{version: v}, nil
		}
	}
	var near []string
	if program, err := os.Executable(); err == nil {
		near = append(near, filepath.Dir(program))
	}
	if dir, err := os.Getwd(); err == nil {
		near = append(near, dir)
	}
	for _, dir := range near {
		if dir := cloneAround(dir); dir != "" {
			return &origin{dir: dir}, nil
		}
	}
	return nil, errors.New("this program is no release, and the clone of Drover that it was built " +
		"in is not around it: say where one is, with --source")
}

var release = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+$`)

// Released is the version of a module that can be downloaded; empty if it cannot, or nobody knows.
func Released(m *debug.Module) string {
	if m.Path == drover && (m.Sum != "" || release.MatchString(m.Version)) {
		return m.Version
	}
	return ""
}

// cloneAround is the clone of Drover that has the directory in it; empty if none has.
func cloneAround(dir string) string {
	for !isClone(dir) {
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
	return dir
}

var moduleLine = regexp.MustCompile(`(?m)^module ` + regexp.QuoteMeta(drover) + `$`)

func isClone(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && moduleLine.Match(text)
}
