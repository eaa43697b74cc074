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

// Who waits lets others have its slot, and is waited for when the pool closes.
func TestPoolRests(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		var p *pool
		var mu sync.Mutex
		var ran []string
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			ran = append(ran, what)
		}
		rested, release := make(chan struct{}), make(chan struct{})
		p = newPool(1, 8, func(a *ask) {
			if a.typ == "rests" {
				p.rest(func() { <-rested })
			} else {
				<-release
			}
			note(a.typ)
		})
		for _, typ := range []string{"rests", "rests", "first", "second"} {
			p.submit(&ask{typ: typ})
		}
		synctest.Wait() // two rest, the first of the others runs
		close(rested)
		synctest.Wait() // they go on beside it
		p.close()
		release <- struct{}{}
		synctest.Wait()
		select {
		case <-p.idle:
			t.Error("the pool is idle while the second one runs")
		default:
		}
		release <- struct{}{}
		<-p.idle
		if want := []string{"rests", "rests", "first", "second"}; !slices.Equal(ran, want) {
			t.Errorf("ran %v, want %v", ran, want)
		}
	})
}
