package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/ops/audit"
	"github.com/droverhq/drover/schemas"
)

func AuditCommand(a *cli.App) *cobra.Command {
	var repair bool
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Find what is stuck, and repair what is safe to repair",
		Long: `Compare what every open run waits for, as the owners of the partitions tell, with
the tasks, alarms, claims and logs that are there. What looks wrong is looked at again two seconds
later, and counts if it is still so.

Repaired are: a task, an alarm or a question to a decider that is missing, and the end of a child
that its parent has not heard of, by doing it again, which does no harm; tasks and alarms that no
run waits for, by removing them. The rest is told: partitions without owner, alarms that are
overdue, messages that nobody reads, lists without workers or with consumers that somebody has
changed, types without deciders, parked runs, and runs that only a signal can move.

A fault is something wrong; a warning is a run that is parked, until somebody mends its decider; a
notice is something to know. The exit code is 1 if a fault was not repaired, and else 5 if there
is a warning. The master of the namespace does the same by itself all the time, and logs what it
finds.`,
		Args: cli.ArgNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				return auditNamespace(ctx, a, c, repair)
			})
		},
	}
	cmd.Flags().BoolVar(&repair, "repair", true,
		"repair what is safe to repair; with --repair=false only tell")
	return cmd
}

func auditNamespace(ctx context.Context, a *cli.App, c *drover.Client, repair bool) error {
	ns := subject.Namespace(c.Namespace())
	partitions, err := cli.PartitionsOf(ctx, c, "audit")
	if err != nil {
		return err
	}
	held, err := claims.Open(natsconn.Of(c), ns.BucketClaims(), claims.Options{Node: "audit"})
	if err != nil {
		return err
	}
	auditor, err := audit.New(audit.Options{
		Conn: natsconn.Of(c), Namespace: ns, Partitions: partitions, Claims: held,
		ReportOnly: !repair, Identity: "drover audit", Rate: 10_000,
	})
	if err != nil {
		return err
	}
	r, err := auditor.Pass(ctx, true)
	if errors.Is(err, natsconn.ErrNoStream) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return &drover.Error{
			Op: "audit", Code: schemas.CodeNotFound,
			Err:  fmt.Errorf("a stream of namespace %q is missing: %w", ns, err),
			Hint: "\"drover doctor\" says which; a server makes what is missing when it starts",
		}
	}
	if err != nil {
		return err
	}
	if err := showAudit(a, r); err != nil {
		return err
	}
	return auditError(r)
}

// auditError is what the exit code of an audit comes from.
func auditError(r *audit.Report) error {
	if n := r.Wrong(); n > 0 {
		return fmt.Errorf("audit: %s not repaired: each says what to do",
			cli.Counted(n, "fault is", "faults are"))
	}
	if n := r.Warnings(); n > 0 {
		return fmt.Errorf("audit: %s %w: mend the deciders, then: drover resume --query type=TYPE",
			cli.Counted(n, "run is", "runs are"), cli.ErrParked)
	}
	return nil
}

func showAudit(a *cli.App, r *audit.Report) error {
	if a.JSON {
		return a.Document(r)
	}
	for i := range r.Findings {
		if err := a.Say("%s", findingLine(&r.Findings[i])); err != nil {
			return err
		}
	}
	for _, kind := range sortedKinds(r.More) {
		if err := a.Say("        %s: %d more", kind, r.More[kind]); err != nil {
			return err
		}
	}
	verdict := "all is well"
	switch n := r.Wrong(); {
	case n > 0:
		verdict = fmt.Sprintf("%d NOT REPAIRED", n)
	case r.Warnings() > 0:
		verdict = cli.Counted(r.Warnings(), "run is parked", "runs are parked")
	case len(r.Findings) > 0:
		verdict = "nothing is wrong that was not repaired"
	}
	return a.Say("namespace %s: %s, %s and %s looked at in %v: %s", r.Namespace,
		cli.Counted(r.Runs, "open run", "open runs"), cli.Counted(r.Tasks, "task", "tasks"),
		cli.Counted(r.Alarms, "alarm", "alarms"), r.Took.Std().Round(time.Millisecond), verdict)
}

func findingLine(f *audit.Finding) string {
	line := fmt.Sprintf("%-7s %s: %s", f.Severity, f.Kind, cli.Sentence(f.Text))
	switch {
	case f.Failed != "":
		line += " → the repair failed: " + cli.Sentence(f.Failed)
	case f.Done != "":
		line += " → " + cli.Sentence(f.Done)
	}
	return line
}

func sortedKinds(m map[audit.Kind]int) []audit.Kind { return slices.Sorted(maps.Keys(m)) }
