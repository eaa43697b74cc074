package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/ops/recycle"
	"github.com/droverhq/drover/schemas"
)

const (
	// backTimeout is how long a node that begins its roles anew waits for its home before it counts
	// as back.
	backTimeout = time.Minute
)

// ErrRecycled is the end of the roles for a recycle, and with --recycle-exit that of the process.
var ErrRecycled = errors.New("the server has ended for a recycle; it is to be started again")

// turn is one recycle of this node.
type turn struct {
	slot       time.Time
	generation chan *generation // gets the one that begins
	back       chan struct{}    // closed when the roles are at work again
}

// recycles gives this node its turns.
func (n *node) recycles() (*recycle.Runner, error) {
	home := n.home.space.Name
	o := claims.Options{Node: n.member.Name(), TTL: n.o.ClaimTTL, Logger: n.log}
	if n.server != nil {
		o.StoreID, o.Boot = n.server.StoreID(), n.server.Boot()
	}
	held, err := claims.Open(n.conn, home.BucketClaims(), o)
	if err != nil {
		return nil, err
	}
	restart := n.restart
	if n.o.RecycleExit {
		restart = n.exit
	}
	return recycle.NewRunner(recycle.RunnerOptions{
		Conn: n.conn, Namespace: home, Claims: held, Node: n.member.Name(), Logger: n.log,
		Since:   func() time.Time { return schemas.Timestamp(n.since.Load()).Time() },
		Now:     func(ctx context.Context) time.Time { return recycle.Now(ctx, n.register) },
		Suggest: n.suggest, Restart: restart, Exits: n.o.RecycleExit,
	}), nil
}

// suggest asks the runs of all brokers of this node to continue as new.
func (n *node) suggest(ctx context.Context) (asked int, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, b := range n.generation.Load().working() {
		wg.Go(func() {
			got, failed := b.SuggestContinuations(ctx)
			mu.Lock()
			defer mu.Unlock()
			asked += got
			err = errors.Join(err, failed)
		})
	}
	wg.Wait()
	return asked, err
}

// restart has the roles of this node end as for a planned stop, and begin anew in this process.
func (n *node) restart(ctx context.Context, slot time.Time) error {
	n.write(ctx, schemas.NodeDraining)
	t := &turn{slot: slot, generation: make(chan *generation, 1), back: make(chan struct{})}
	select {
	case n.turns <- t:
	case <-ctx.Done():
		return nil
	}
	select {
	case <-t.back:
	case <-ctx.Done():
		return nil
	}
	limit := time.NewTimer(backTimeout)
	defer limit.Stop()
	select {
	case <-(<-t.generation).home:
	case <-limit.C:
	case <-ctx.Done():
	}
	if ctx.Err() == nil {
		n.write(ctx, schemas.NodeReady)
	}
	if ctx.Err() != nil {
		n.write(ctx, schemas.NodeDraining)
	}
	return nil
}

// exit ends the process as a planned stop does, for something else to start it again. It returns
// when the roles have ended.
func (n *node) exit(context.Context, time.Time) error {
	n.stop(ErrRecycled)
	<-n.ended
	return nil
}
