package server

import (
	"context"
	"fmt"

	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/decider/flow/store"
	policies "github.com/droverhq/drover/internal/retention"
	"github.com/droverhq/drover/ops/operations"
	"github.com/droverhq/drover/ops/retention"
)

// janitor purges the closed runs of the namespace while this node is its master.
func (t *tenant) janitor() (*retention.Janitor, error) {
	deployed := store.Open(t.conn, t.space.Name)
	return retention.New(retention.Options{
		Conn: t.conn, Namespace: t.space.Name, Partitions: t.space.Partitions, Logger: t.log,
		Node: t.claims.Node(), Holds: t.windows.Holds,
		Note:        operations.New(t.conn, t.space.Name, t.claims.Node(), t.log).Note,
		Observer:    func(r *retention.Report) { t.metrics.Purged(r.Purged) },
		FlowDefault: t.space.FlowRetention, Default: t.space.Retention,
		Flows: func(ctx context.Context) (map[string]bool, error) {
			all, err := deployed.List(ctx)
			if err != nil {
				return nil, err
			}
			names := make(map[string]bool, len(all))
			for _, e := range all {
				if e.Kind == store.Flow {
					names[e.Name] = true
				}
			}
			return names, nil
		},
	})
}

// retention is what the word system means in what a run says of it, and tells the log what holds.
func (t *tenant) retention() (*policies.Policy, error) {
	p, err := policies.ParseDefault(t.space.FlowRetention)
	if err != nil {
		return nil, fmt.Errorf(
			"namespace %s: %w: mend it with: drover namespace create %s --retention-flows %q",
			t.space.Name, err, t.space.Name, topology.DefaultFlowRetention)
	}
	t.log.WithField("flows", t.space.FlowRetention).WithField("others", t.space.Retention).
		Info("retention: closed runs that say nothing themselves are kept so; drover namespace " +
			"create --retention changes it")
	return &p, nil
}
