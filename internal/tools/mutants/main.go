// Mutants shows that the tests notice when a rule of the protocol is broken. For each mutation of a
// list it replaces one piece of production code and runs the narrowest test that is to fail. The
// files of the checkout stay as they are: the compiler is told to read another file in place of one
// of them.
//
// A mutation is killed if the test passes without it, and fails with it. It survives if the test
// passes all the same. It is an error if the text to replace does not stand exactly once in the
// packages that the mutation names, if the mutated code does not compile, or if the test ends in
// another way than by its own failure.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	root := flag.String("root", ".", "the checkout to test")
	list := flag.String("list", "mutants.txt", "the file of mutations")
	flag.Parse()
	if err := run(*root, *list, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run tries the mutations whose names begin with one of the prefixes, in whole words, or all if
// there are none. It tries none if the text of one is not found, which takes a second to see.
func run(root, list string, prefixes []string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	all, err := readMutations(list)
	if err != nil {
		return err
	}
	var lost []error
	for _, m := range all {
		if _, err := m.find(root); err != nil {
			lost = append(lost, fmt.Errorf("%s: %w", m.name, err))
		}
	}
	if len(lost) > 0 {
		return errors.Join(lost...)
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l := &laboratory{root: root, dir: dir, binaries: map[string]string{}}
	killed, tried := 0, 0
	for _, m := range all {
		if !m.named(prefixes) {
			continue
		}
		tried++
		began := time.Now()
		err := l.try(m)
		how := "killed by " + m.test
		if err != nil {
			how = err.Error()
		} else {
			killed++
		}
		fmt.Printf("%-28s %5.1f s  %s\n", m.name, time.Since(began).Seconds(), how)
	}
	if tried == 0 {
		return fmt.Errorf("no mutation is named %q", prefixes)
	}
	fmt.Printf("%d of %d killed\n", killed, tried)
	if killed < tried {
		return fmt.Errorf("%d of %d were not killed", tried-killed, tried)
	}
	return nil
}

// mutation is one way to break the product.
type mutation struct {
	name     string // the rule, and what is broken
	tree     string // the folder whose production code has the text, with all below it
	old, new string
	pkg      string // of the test, from the root
	test     string // a pattern of names
}

func (m *mutation) named(prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(m.name+" ", p+" ") {
			return true
		}
	}
	return len(prefixes) == 0
}

// readMutations reads a list: blocks of lines "key value" that are parted by empty lines.
func readMutations(name string) (all []*mutation, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var m *mutation
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, _ := strings.Cut(line, " ")
		value = strings.TrimLeft(value, " ")
		if key == "name" {
			m = &mutation{}
			all = append(all, m)
		}
		switch {
		case m == nil:
			return nil, fmt.Errorf("%s: %q stands before the first name", name, line)
		case key == "name":
			m.name = value
		case key == "in":
			m.tree = value
		case key == "old":
			m.old = value
		case key == "new":
			m.new = value
		case key == "test":
			m.pkg, m.test, _ = strings.Cut(value, " ")
		default:
			return nil, fmt.Errorf("%s: %q is no key", name, key)
		}
	}
	for _, m := range all {
		if m.tree == "" || m.old == "" || m.pkg == "" || m.test == "" {
			return nil, fmt.Errorf("%s: %s lacks a line", name, m.name)
		}
	}
	return all, nil
}
