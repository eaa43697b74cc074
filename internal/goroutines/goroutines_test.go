package goroutines_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/droverhq/drover/internal/goroutines"
	"github.com/droverhq/drover/internal/virtual"
)

// Each job is done once, whether somebody waits for it, nobody does, or the one before it has ended its goroutine.
func TestEachJobIsDoneOnce(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		var sum atomic.Int64
		c := goroutines.New(2, func(n int64) {
			sum.Add(n)
			if n%3 == 0 {
				runtime.Goexit()
			}
		})
		want := int64(0)
		for n := int64(1); n <= 100; n++ {
			c.Do(n)
			if want += n; n%5 == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		c.Close()
		c.Do(1000) // still
		synctest.Wait()
		if got := sum.Load(); got != want+1000 {
			t.Errorf("the jobs add up to %d, want %d", got, want+1000)
		}
	}) // the bubble ends only if all goroutines have
}

func TestWhoWaitsIsBounded(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		hold := make(chan struct{})
		c := goroutines.New(3, func(struct{}) { <-hold })
		for range 50 {
			c.Do(struct{}{})
		}
		close(hold)
		synctest.Wait()
		if n := c.Waiting(); n != 3 { // the runtime counts those that are about to end, too
			t.Errorf("%d goroutines wait, want 3", n)
		}
		c.Close()
	})
}

func BenchmarkDo(b *testing.B) {
	back := make(chan struct{})
	c := goroutines.New(4, func(struct{}) { back <- struct{}{} })
	defer c.Close()
	for b.Loop() {
		c.Do(struct{}{})
		<-back
	}
}

// Jobs that need 6 KiB of stack, 64 at a time, each time after a collection of garbage.
func BenchmarkStacksStay(b *testing.B) {
	back := make(chan byte, 64)
	c := goroutines.New(64, func(struct{}) { back <- deep(6) })
	defer c.Close()
	for b.Loop() {
		b.StopTimer()
		runtime.GC()
		b.StartTimer()
		for range 64 {
			c.Do(struct{}{})
		}
		for range 64 {
			<-back
		}
	}
}

//go:noinline
func deep(kib int) byte {
	var used [1 << 10]byte
	used[kib] = byte(kib)
	if kib > 1 {
		used[0] = deep(kib - 1)
	}
	return used[0] + used[kib]
}
