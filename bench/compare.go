package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"text/tabwriter"
)

// side is one of the two versions that are compared.
type side struct {
	name, bench, server string
	args                []string // more of them for its bench
	lines               []*line
}

// compare measures another revision and the working tree in turn, and prints the ratios. The machine's speed drifts, so
// the two runs of a pair follow each other directly, with the order changing from round to round, each on a server and a
// store of its own; only a ratio within a pair is trusted.
func compare(ctx context.Context, o options) (err error) {
	names, err := chosen(o.workloads)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "drover-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	now, err := workingTree(ctx, o, dir, "new")
	if err != nil {
		return err
	}
	tree := filepath.Join(dir, "tree")
	if err := git(ctx, "worktree", "add", "--detach", tree, o.against); err != nil {
		return fmt.Errorf("check out %s: %w", o.against, err)
	}
	defer func() {
		err = errors.Join(err, git(context.WithoutCancel(ctx), "worktree", "remove", "--force", tree))
	}()
	past := &side{name: "old"}
	if past.server, err = buildServer(ctx, tree, tree, ""); err != nil {
		return err
	}
	if past.bench, err = buildBench(ctx, tree); err != nil {
		return fmt.Errorf("build the bench of %s: %w", o.against, err)
	}
	return inTurn(ctx, o, names, past, now)
}

// pairs measures the raw decider and workflow code in turn, as compare does versions.
func pairs(ctx context.Context, o options) error {
	if o.workloads == defaultWorkloads {
		o.workloads = "W1,W2,W3p,W3s"
	}
	names, err := chosen(o.workloads)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "drover-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	raw, err := workingTree(ctx, o, dir, "raw")
	if err != nil {
		return err
	}
	code := *raw
	code.name, code.args = "code", []string{"-code"}
	return inTurn(ctx, o, names, raw, &code)
}

// workingTree is a side with this bench and the working tree's server, which is built in dir.
func workingTree(ctx context.Context, o options, dir, name string) (*side, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	server, err := buildServer(ctx, "..", dir, o.server)
	return &side{name: name, bench: self, server: server}, err
}

// inTurn measures two sides and prints the ratios.
func inTurn(ctx context.Context, o options, names []string, past, present *side) error {
	pair := []*side{past, present}
	for range o.rounds {
		for _, name := range names {
			for _, s := range pair {
				if err := s.measure(ctx, name); err != nil {
					return fmt.Errorf("%s, %s: %w", name, s.name, err)
				}
			}
		}
		slices.Reverse(pair)
	}
	return ratios(os.Stderr, past, present)
}

// buildBench builds the bench of another tree, so that its worker and its client are measured too.
func buildBench(ctx context.Context, tree string) (string, error) {
	binary := filepath.Join(tree, "bench", "bench.bin")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	cmd.Dir = filepath.Join(tree, "bench")
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, said)
	}
	return binary, nil
}

// git runs git without hooks, which may expect another folder.
func git(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.hooksPath=/dev/null"}, args...)...)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, said)
	}
	return nil
}

// measure runs one workload in a process of its own.
func (s *side) measure(ctx context.Context, name string) error {
	args := append([]string{"-w", name, "-server", s.server, "-tag", s.name}, s.args...)
	flag.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "n", "conc", "sleep", "wakes", "profile", "partitions":
			args = append(args, "-"+f.Name, f.Value.String())
		}
	})
	lines, err := measured(ctx, s.bench, args)
	if err != nil {
		return err
	}
	for _, l := range lines {
		if err := l.print(); err != nil {
			return err
		}
	}
	s.lines = append(s.lines, lines...)
	return nil
}

// ratios prints, for each figure, the medians of both sides and the median of the ratios of the pairs.
func ratios(out io.Writer, one, other *side) error {
	past, present := one.lines, other.lines
	if len(past) != len(present) {
		return fmt.Errorf("%d lines of %s and %d of %s make no pairs", len(past), one.name, len(present), other.name)
	}
	before, after, quotients := collect(past), collect(present), collect(nil)
	for i := range present {
		old := collect(past[i : i+1])
		for _, f := range present[i].figures() {
			// A figure that was 0 on one side has no ratio.
			if v := old.values[[2]string{present[i].Workload, f.name}]; v != nil {
				quotients.add(present[i].Workload, figure{f.name, f.value / v[0]})
			}
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "workload\tfigure\t%s\t%s\t%s/%s\tpairs\n", one.name, other.name, other.name, one.name)
	for _, key := range quotients.order {
		q := quotients.values[key]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.2f\t%.2f\n", key[0], key[1], short(median(before.values[key])), short(median(after.values[key])), median(q), q)
	}
	return w.Flush()
}
