package coroutine_test

import (
	"testing"

	"github.com/droverhq/drover/decider/workflow/internal/coroutine"
)

// A coroutine runs and waits again.
func BenchmarkSwitch(b *testing.B) {
	d := coroutine.New()
	c := d.Go(coroutine.Main, func(c *coroutine.Coroutine) {
		for {
			c.Park()
		}
	})
	run(b, d)
	for b.Loop() {
		c.Ready()
		run(b, d)
	}
	d.Evict(limit)
}

// The same with the look at its stack that each API call has.
func BenchmarkSwitchByCall(b *testing.B) {
	d := coroutine.New()
	c := d.Go(coroutine.Main, func(*coroutine.Coroutine) {
		for {
			c, _ := d.Enter("")
			c.Park()
		}
	})
	run(b, d)
	for b.Loop() {
		c.Ready()
		run(b, d)
	}
	d.Evict(limit)
}

// A coroutine is made, runs and ends.
func BenchmarkSpawn(b *testing.B) {
	d := coroutine.New()
	for b.Loop() {
		d.Go("", func(*coroutine.Coroutine) {})
		run(b, d)
	}
}

// A run of one coroutine that waits is made, and evicted.
func BenchmarkSpawnAndEvict(b *testing.B) {
	for b.Loop() {
		d := coroutine.New()
		d.Go("", func(c *coroutine.Coroutine) { c.Park() })
		run(b, d)
		d.Evict(limit)
	}
}

func run(b *testing.B, d *coroutine.Dispatcher) {
	if err := d.Run(); err != nil {
		b.Fatal(err)
	}
}
