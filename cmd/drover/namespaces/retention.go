package namespaces

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
)

func RetentionCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retention",
		Short: "Show how long closed runs are kept, and why one is still there",
		Long: `Tell how long closed runs are kept. What a run says itself holds for it and those
it is judged with; for others the defaults of the namespace do, which drover namespace create
changes with --retention and --retention-flows.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("explain is missing")
			}
			return cli.NoCommand(cmd, args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(retentionExplain(a))
	return cmd
}

func retentionExplain(a *cli.App) *cobra.Command {
	var runID string
	cmd := &cobra.Command{
		Use:   "explain ID",
		Short: "Show why a run is still there, and when it will be purged",
		Long: `Tell why a run is still there, in which group and by which expression it is judged,
and when it goes. Open runs are always kept. Without --run it is the latest run of the workflow
id. The master of the namespace answers: a server with the role ops.`,
		Args: cli.ArgNames("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				r, err := c.Run(args[0], runID).Retention(ctx)
				if err != nil {
					return err
				}
				if r.V = 0; a.JSON {
					return a.Document(r)
				}
				_, err = a.Stdout.Write(retentionText(r))
				return err
			})
		},
	}
	cli.RunFlag(cmd, &runID)
	return cmd
}

// retentionText lays an explanation out for people.
func retentionText(r *schemas.RetentionResponse) []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, cli.Sentence(r.Because))
	t := tabwriter.NewWriter(&b, 2, 8, 2, ' ', 0)
	fmt.Fprintf(t, "run\t%s, %s\n", cli.Word(r.Run, 40), r.Status)
	if r.ClosedAt != 0 {
		fmt.Fprintf(t, "closed\t%s\n", cli.When(r.ClosedAt))
	}
	if r.Group != "" {
		fmt.Fprintf(t, "group\t%s: number %d of %d\n", cli.Sentence(r.Group), r.Rank, r.Count)
		fmt.Fprintf(t, "judged by\t%s, %s\n", cli.Sentence(r.Expression), r.Source)
	}
	if r.Until != 0 {
		fmt.Fprintf(t, "until\t%s\n", cli.When(r.Until))
	}
	t.Flush()
	return b.Bytes()
}
