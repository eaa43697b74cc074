package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// limit is how long a build or a test may take.
const limit = 5 * time.Minute

// laboratory builds test programs with and without a mutation.
type laboratory struct {
	root, dir string
	binaries  map[string]string // without one, by package
}

// try returns nil if the mutation is killed.
func (l *laboratory) try(m *mutation) error {
	file, err := m.find(l.root)
	if err != nil {
		return err
	}
	sound := l.binaries[m.pkg]
	if sound == "" {
		sound = filepath.Join(l.dir, fmt.Sprintf("sound%d", len(l.binaries)))
		if err := l.build(m.pkg, sound); err != nil {
			return fmt.Errorf("does not compile without it: %w", err)
		}
		l.binaries[m.pkg] = sound
	}
	if out, err := l.run(m, sound); err != nil {
		return fmt.Errorf("%s fails without it: %w\n%s", m.test, err, end(out))
	}
	overlay, err := l.overlay(m, file)
	if err != nil {
		return err
	}
	broken := filepath.Join(l.dir, "broken")
	if err := l.build(m.pkg, broken, "-overlay", overlay); err != nil {
		return fmt.Errorf("does not compile: %w", err)
	}
	out, err := l.run(m, broken)
	switch {
	case err == nil:
		return fmt.Errorf("SURVIVED %s", m.test)
	case !bytes.Contains(out, []byte("--- FAIL: ")):
		return fmt.Errorf("%s did not fail by itself: %w\n%s", m.test, err, end(out))
	}
	return nil
}

// find returns the one file of production code that has the text to replace, which stands there
// once.
func (m *mutation) find(root string) (file string, err error) {
	times := 0
	err = filepath.WalkDir(filepath.Join(root, m.tree),
		func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return fs.SkipDir
			case d.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			text, err := os.ReadFile(name)
			if n := bytes.Count(text, []byte(m.old)); n > 0 {
				file, times = name, times+n
			}
			return err
		})
	if err == nil && times != 1 {
		err = fmt.Errorf("the text stands %d times below %s, want once: %s", times, m.tree, m.old)
	}
	return file, err
}

// overlay writes the mutated file, and what tells the compiler to read it.
func (l *laboratory) overlay(m *mutation, file string) (name string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	mutated := filepath.Join(l.dir, "mutated.go")
	if err := os.WriteFile(mutated, []byte(strings.Replace(string(text), m.old, m.new, 1)), 0o600); err != nil {
		return "", err
	}
	body, err := json.Marshal(map[string]map[string]string{"Replace": {file: mutated}})
	if err != nil {
		return "", err
	}
	name = filepath.Join(l.dir, "overlay.json")
	return name, os.WriteFile(name, body, 0o600)
}

func (l *laboratory) build(pkg, to string, flags ...string) error {
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	args := append([]string{"test", "-c", "-vet=off", "-o", to}, flags...)
	cmd := exec.CommandContext(ctx, cmp.Or(os.Getenv("GO"), "go"), append(args, "./"+pkg)...)
	cmd.Dir = l.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// run runs the test of a mutation with a test program. A pattern that finds no test is an error.
func (l *laboratory) run(m *mutation, binary string) (out []byte, err error) {
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	cmd := exec.CommandContext(ctx, binary, "-test.run", m.test, "-test.count=1", "-test.failfast")
	cmd.Dir = filepath.Join(l.root, m.pkg)
	out, err = cmd.CombinedOutput()
	if err == nil && bytes.Contains(out, []byte("no tests to run")) {
		err = errors.New("there is no such test")
	}
	return out, err
}

// end is the end of an output, for people.
func end(out []byte) []byte { return out[max(0, len(out)-2000):] }
