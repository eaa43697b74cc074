package virtual_test

import (
	"sync"
	"testing"

	"github.com/droverhq/drover/internal/virtual"
)

// What is in a pool stays on its side of a bubble.
func TestRun(t *testing.T) {
	var pool sync.Pool
	pool.Put(new("from before"))
	ran := false
	virtual.Bubble(t, func(t *testing.T) {
		ran = true
		if got := pool.Get(); got != nil {
			t.Errorf("the pool has what is %s", *got.(*string))
		}
		pool.Put(new("from within"))
	})
	if got := pool.Get(); got != nil || !ran {
		t.Errorf("the pool has %v; ran: %t", got, ran)
	}
}
