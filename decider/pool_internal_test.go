package decider

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/droverhq/drover/internal/virtual"
)

func TestPoolHoldsBackInOrder(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		var mu sync.Mutex
		var ran []string
		release := make(chan struct{})
		p := newPool(1, 2, func(a *ask) {
			mu.Lock()
			ran = append(ran, a.typ)
			mu.Unlock()
			<-release
		})
		submitted := 0
		go func() {
			for i := range 5 {
				p.submit(&ask{typ: fmt.Sprint(i)})
				submitted++
			}
		}()
		synctest.Wait()
		if submitted != 3 { // one runs, two wait
			t.Fatalf("%d asks were taken, want 3", submitted)
		}
		release <- struct{}{}
		synctest.Wait()
		if submitted != 4 {
			t.Fatalf("%d asks were taken after one had ended, want 4", submitted)
		}
		p.close() // the fifth is forgotten
		synctest.Wait()
		if submitted != 5 {
			t.Fatal("a closed pool holds its caller")
		}
		close(release)
		<-p.idle
		if want := []string{"0", "1", "2", "3"}; !slices.Equal(ran, want) {
			t.Fatalf("ran %v, want %v", ran, want)
		}
		p.submit(&ask{typ: "late"})
		if _, running := p.abandon(); running != 0 {
			t.Fatal("a closed pool took an ask")
		}
	})
}
