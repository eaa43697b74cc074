package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// sitting is one run of everything side by side.
type sitting struct {
	o       options
	dir     string // for stores, removed in the end
	cache   string // for builds, kept
	self    string
	drover  string
	machine *machine
	engines []*engine
	lines   []*line
}

// sit measures engines in turn. The machine's speed drifts: so each workload is run by all engines before the next one
// begins, in an order that turns by one from round to round, and the ratios are those of one round.
func sit(ctx context.Context, o options) (err error) {
	s := &sitting{o: o}
	if s.dir, err = os.MkdirTemp("", "drover-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
	// The user postgres has to come through to its data.
	if err := os.Chmod(s.dir, 0o755); err != nil {
		return err
	}
	if err := s.choose(); err != nil {
		return err
	}
	if s.self, err = os.Executable(); err != nil {
		return err
	}
	if s.drover, err = buildServer(ctx, "..", s.dir, o.server); err != nil {
		return err
	}
	s.machine = look(ctx, s.drover)
	names, err := s.workloads()
	if err != nil {
		return err
	}
	missing := s.prepare(ctx) // which finds the versions of the others
	if err := json.NewEncoder(os.Stdout).Encode(s.machine); err != nil {
		return err
	}
	for _, l := range missing {
		s.note(l)
	}
	for round := range o.rounds {
		for _, name := range names {
			for i := range s.engines {
				e := s.engines[(i+round)%len(s.engines)]
				if err := s.measure(ctx, e, name, round); err != nil {
					return errors.Join(err, s.tell())
				}
			}
		}
	}
	return s.tell()
}

func (s *sitting) choose() (err error) {
	for name := range strings.SplitSeq(s.o.engines, ",") {
		i := slices.IndexFunc(engines(), func(e *engine) bool { return e.name == name })
		if i < 0 {
			return fmt.Errorf("engine %q is not known: want some of %s", name, strings.Join(engineNames(), ", "))
		}
		s.engines = append(s.engines, engines()[i])
	}
	if s.cache = s.o.cache; s.cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("-cache is empty, and there is no other place: %w", err)
		}
		s.cache = filepath.Join(dir, "drover-bench")
	}
	s.cache, err = filepath.Abs(s.cache)
	return err
}

// workloads are those of -w in the order of the table, W3 in one since the peers run both halves of it in one.
func (s *sitting) workloads() (names []string, err error) {
	chosen := strings.Split(s.o.workloads, ",")
	if s.o.workloads == defaultWorkloads {
		return sittingOrder, nil
	}
	for _, name := range chosen {
		if !slices.Contains(sittingOrder, name) {
			return nil, fmt.Errorf("workload %q has no place in a sitting: want some of %s", name, strings.Join(sittingOrder, ", "))
		}
	}
	for _, name := range sittingOrder {
		if slices.Contains(chosen, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// prepare builds the engines, and drops those that cannot be run: for each it returns a line that says why.
func (s *sitting) prepare(ctx context.Context) (missing []*line) {
	s.engines = slices.DeleteFunc(s.engines, func(e *engine) bool {
		if e.prepare == nil {
			return false
		}
		err := e.prepare(ctx, s)
		if err != nil {
			missing = append(missing, &line{Engine: e.name, Workload: everything, Time: time.Now().UTC(), NotRun: oneLine(err)})
		}
		return err != nil
	})
	return missing
}

// everything stands for all workloads of an engine that is not run.
const everything = "all"

// measure has an engine run a workload. A failure is a line of the table, unless the sitting was interrupted.
func (s *sitting) measure(ctx context.Context, e *engine, name string, round int) error {
	own, ok := e.workloads[name]
	if !ok {
		return nil
	}
	fmt.Fprintf(os.Stderr, "bench: %s round %d: %s %s\n", time.Now().Format(time.TimeOnly), round+1, e.name, name)
	began := time.Now().UTC()
	lines, err := e.run(ctx, s, own)
	if ctx.Err() != nil {
		return fmt.Errorf("the sitting was interrupted: %w", context.Cause(ctx))
	}
	if err != nil {
		lines = []*line{{Workload: name, NotRun: oneLine(err)}}
	}
	for _, l := range lines {
		l.Engine, l.Round = e.name, round+1
		if l.Time.IsZero() {
			l.Time = began
		}
		s.note(l)
	}
	return nil
}

func (s *sitting) note(l *line) {
	s.lines = append(s.lines, l)
	if err := l.print(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

// tell prints the table.
func (s *sitting) tell() error {
	fmt.Fprintln(os.Stderr, s.machine)
	for _, e := range s.engines {
		version := ""
		if i := slices.IndexFunc(s.lines, func(l *line) bool { return l.Engine == e.name && l.Version != "" }); i >= 0 {
			version = s.lines[i].Version + "; "
		}
		fmt.Fprintf(os.Stderr, "%s: %s%s\n", e.name, version, e.layout)
	}
	return board(os.Stderr, s.lines)
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
