package check

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/ops/doctor"
)

func DoctorCommand(a *cli.App) *cobra.Command {
	var system string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check NATS, servers and the namespace, and say what to change",
		Long: `Check the NATS server, the nodes and the namespace, and say what to change:
version, JetStream, limits, durability and sync mode, replicas, clocks, disks, streams that are
not as they should be or that others have made on subjects of Drover, partitions without an owner,
backlogs, dead letters, and what this user may ask.

Each line is ok, warn or bad. It changes nothing, and asks little; what needs every run to be
looked at is told by "drover audit", and what needs every record by "drover verify". What this
user may not see is a warning. How NATS servers elsewhere sync their files is told to users of the
system account alone: name a context of one with --system-context.

The exit code is 1 if something is bad.`,
		Args: cli.ArgNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				return examine(ctx, a, c, system)
			})
		},
	}
	cmd.Flags().StringVar(&system, "system-context", "",
		"context of the nats command line of a user of the system account")
	return cmd
}

func examine(ctx context.Context, a *cli.App, c *drover.Client, system string) error {
	o := doctor.Options{Client: c}
	if system != "" {
		conn, err := dialSystem(ctx, a, system)
		if err != nil {
			return err
		}
		defer conn.Close()
		o.System = conn
	}
	findings, err := doctor.Examine(ctx, o)
	if err != nil {
		return err
	}
	each := func(yield func(doctor.Finding, error) bool) {
		for _, f := range findings {
			if !yield(f, nil) {
				return
			}
		}
	}
	err = cli.Lines(a, cli.Table{Columns: cli.Columns("STATUS", "CHECK", "FOUND")}, each,
		func(f doctor.Finding) []string {
			text := f.Found
			if f.Change != "" {
				text += ": " + f.Change
			}
			return []string{string(f.Status), f.Check, cli.Sentence(text)}
		})
	if err != nil || doctor.Worst(findings) != doctor.Bad {
		return err
	}
	n := 0
	for _, f := range findings {
		if f.Status == doctor.Bad {
			n++
		}
	}
	return fmt.Errorf("doctor: %s bad, of %d", cli.Counted(n, "finding is", "findings are"),
		len(findings))
}

// dialSystem connects as a context says, to the address of the command line if there is one.
func dialSystem(ctx context.Context, a *cli.App, name string) (*natsconn.Conn, error) {
	c, err := cli.ReadContext(name)
	if err != nil {
		return nil, cli.Usage(nil, err)
	}
	o := c.Fill(natsconn.Options{Name: "drover doctor"})
	o.URL = cmp.Or(a.NATS, o.URL)
	return natsconn.Dial(ctx, o)
}
