package virtual_test

import (
	"sync"
	"testing"

	"github.com/droverhq/drover/internal/virtual"
)

// What is in a pool stays on its side of a bubble.
func TestRun(t *testing.T) {
	var pool sync.Pool
	pool.Put("from before")
	ran := false
	virtual.Run(t, func(t *testing.T) {
		ran = true
		if got := pool.Get(); got != nil {
			t.Errorf("the pool has what is %v", got)
		}
		pool.Put("from within")
	})
	if got := pool.Get(); got != nil || !ran {
		t.Errorf("the pool has what is %v; ran: %t", got, ran)
	}
}
