package server

import (
	"context"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/virtual"
)

// S2-2: when roles end, flows are decided for until the broker has given its partitions back, so that it waits for no
// decision that nobody makes.
func TestFlowsEndAfterTheBroker(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		var broker, flows time.Duration // when each has ended
		began := time.Now()
		until := func(at *time.Duration, takes time.Duration) runner {
			return runnerFunc(func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(takes)
				*at = time.Since(began)
				return nil
			})
		}
		x := newTenant(&node{}, logrus.New(), nil)
		x.unlist, x.space = func() {}, &topology.Namespace{}
		x.roles = map[string]runner{
			RoleBroker: until(&broker, 3*time.Second), RoleFlows: until(&flows, time.Second),
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := x.run(ctx); err != nil {
			t.Fatal(err)
		}
		if want := time.Minute + 3*time.Second; broker != want || flows != want+time.Second {
			t.Errorf("the broker has ended after %v, flows after %v; want %v and a second later", broker, flows, want)
		}
	})
}

// Without a broker the role flows ends as any other.
func TestFlowsEndWithoutABroker(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		x := newTenant(&node{}, logrus.New(), nil)
		x.unlist, x.space = func() {}, &topology.Namespace{}
		x.roles = map[string]runner{RoleFlows: runnerFunc(func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		})}
		x.drop()
		if err := x.run(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
