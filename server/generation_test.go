package server

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/virtual"
)

// S2-1: a role that hangs in its drain is cut off after the drain timeout, and the next generation begins all the same.
func TestS2_01AHungRoleIsCutOff(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		log, kept := listening()
		n, ctx := newNode(t.Context(), Options{Logger: log, DrainTimeout: 5 * time.Minute})
		n.generation.Store(newGeneration(n))
		forever := make(chan struct{})
		defer close(forever)
		hangs := runnerFunc(func(context.Context) error { <-forever; return nil })
		ended, former := make(chan *turn), sync.WaitGroup{}
		go func() {
			turn, err := n.runGeneration(ctx, &former, map[string]runner{"hangs": hangs})
			if err != nil {
				t.Error(err)
			}
			ended <- turn
		}()
		asked, began := &turn{}, time.Now()
		n.turns <- asked
		got := <-ended
		if took := time.Since(began); got != asked || took < 5*time.Minute || took > 5*time.Minute+time.Second {
			t.Errorf("got %v after %v", got, took)
		}
		former.Wait()
		if _, err := n.generation.Load().dial(ctx, "late"); err == nil {
			t.Error("a role that was cut off can connect again")
		}
		if len(kept.AllEntries()) != 2 {
			t.Errorf("the log has %d entries, want that it was cut off, and that it has not ended", len(kept.AllEntries()))
		}
	})
}
