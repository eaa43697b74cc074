package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// lastOwner says who owned a partition last and since when, as the end of a sentence; empty if
// nobody ever did. Its fence in the history tells, after the claim is gone.
func lastOwner(
	ctx context.Context, conn *natsconn.Conn, ns subject.Namespace, partition int,
) (string, error) {
	m, err := conn.LastBySubject(ctx, ns.StreamHistory(partition), ns.Fence(partition))
	if errors.Is(err, natsconn.ErrNotFound) {
		return ", and never had one", nil
	}
	if err != nil {
		return "", fmt.Errorf("the fence of partition %d: %w", partition, err)
	}
	var f schemas.Fence
	if err := schemas.Unmarshal(m.Data, &f); err != nil {
		return "", fmt.Errorf("the fence of partition %d: %w", partition, err)
	}
	return fmt.Sprintf("; node %q owned it last, since %s", f.Owner, schemas.At(m.Time)), nil
}

// Unserved explains why nobody answers for a workflow: the partition it belongs to has no owner, or
// a silent one. It asks the streams alone. It returns an error that wraps [natsconn.ErrNotFound] if
// the workflow was never started.
func Unserved(
	ctx context.Context, conn *natsconn.Conn, ns subject.Namespace, partitions int, wid string,
) (string, error) {
	p := subject.Partition(wid, partitions)
	if _, err := conn.LastBySubject(ctx, ns.StreamHistory(p), ns.HistoryOfWorkflow(p, wid)); err != nil {
		return "", fmt.Errorf("workflow %q: %w", wid, err)
	}
	c, err := claims.Open(conn, ns.BucketClaims(), claims.Options{Node: "why"})
	if err != nil {
		return "", err
	}
	held, err := c.List(ctx)
	if err != nil {
		return "", err
	}
	for _, i := range held {
		if i.Key == partitionKey(p) && !i.Expired {
			return fmt.Sprintf(
				"node %q holds its partition %d since %s and does not answer; unless it renews "+
					"the claim, another takes over at %s", i.Node, p, schemas.At(i.Since),
				schemas.At(i.Deadline)), nil
		}
	}
	last, err := lastOwner(ctx, conn, ns, p)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("its partition %d has no owner%s; start one with: drover server", p, last),
		nil
}
