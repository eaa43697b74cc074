package nodes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
)

func ClaimsCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "claims",
		Short: "List the claims: owners of partitions and alarms, and the master",
		Long: `Show the claims of the namespace: which server owns a partition (partition.N),
rings its alarms (alarms.N), takes part in sharing the partitions (broker.NODE) or in ringing the
alarms (timers.NODE), and keeps order (master).

NUMBER grows from holder to holder of a claim; it fences the writes of the one before. A holder
renews its claim every third of its time, so EXPIRES is how long the claim outlives a crash. An
expired claim is ignored, and removed by the master.

It reads the bucket directly, so that no server needs to run.`,
		Args: cli.ArgNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				list, now, err := readClaims(ctx, c)
				if err != nil {
					return err
				}
				all := make([]ClaimInfo, 0, len(list))
				for _, i := range list {
					all = append(all, ClaimInfo{
						Key: i.Key, Node: i.Node, Number: i.Number, Revision: i.Revision,
						Since: schemas.At(i.Since), ExpiresAt: schemas.At(i.Deadline),
						Expired: i.Expired, Malformed: i.Malformed, left: i.Deadline.Sub(now),
					})
				}
				return cli.Lines(a, cli.Table{
					Columns: claimColumns, None: "no claims: no server runs for the namespace",
				}, each(all), claimRow)
			})
		},
	}
}

var claimColumns = []cli.Column{
	{Head: "CLAIM", Keep: 20},
	{Head: "NODE", Keep: 12},
	{Head: "NUMBER", Drop: 1},
	{Head: "SINCE", Drop: 2},
	{Head: "EXPIRES"},
}

// ClaimInfo is a line of "drover claims".
type ClaimInfo struct {
	Key       string            `json:"key"`
	Node      string            `json:"node,omitempty"`
	Number    uint64            `json:"number"`
	Revision  uint64            `json:"revision"`
	Since     schemas.Timestamp `json:"since,omitempty"`
	ExpiresAt schemas.Timestamp `json:"expiresAt"` // by the NATS server's clock, as all times here
	Expired   bool              `json:"expired"`
	Malformed bool              `json:"malformed,omitempty"`
	left      time.Duration
}

func claimRow(i ClaimInfo) []string {
	left := "in " + cli.Span(max(i.left, 0))
	if i.Expired {
		left = "expired"
	}
	holder := cli.Word(i.Node, cli.Whole)
	if i.Malformed {
		holder = "?"
	}
	return []string{
		cli.Word(i.Key, cli.Whole), holder, fmt.Sprint(i.Number), cli.When(i.Since), left,
	}
}

// readClaims lists the claims of the namespace, and gives the server's time.
func readClaims(ctx context.Context, c *drover.Client) ([]claims.Info, time.Time, error) {
	ns := subject.Namespace(c.Namespace())
	held, err := claims.Open(natsconn.Of(c), ns.BucketClaims(),
		claims.Options{Node: "drover claims"})
	if err != nil {
		return nil, time.Time{}, err
	}
	list, err := held.List(ctx)
	if errors.Is(err, natsconn.ErrNoStream) {
		if _, err := topology.Lookup(ctx, natsconn.Of(c), ns); err == nil {
			return nil, time.Time{}, &drover.Error{
				Op: "claims", Code: schemas.CodeNotFound,
				Err: fmt.Errorf("the bucket %s is gone: nobody can own a partition of "+
					"namespace %q", ns.BucketClaims(), ns),
				Hint: topology.Remake(ns) + `; "drover doctor" tells what that is`,
			}
		}
		return nil, time.Time{}, &drover.Error{
			Op: "claims", Code: schemas.CodeNotFound,
			Err:  fmt.Errorf("there is no namespace %q: it has no bucket of claims", ns),
			Hint: cli.HintNoNamespace,
		}
	}
	now := held.Clock().Now(time.Now())
	if now.IsZero() {
		now = time.Now()
	}
	return list, now, err
}
