package clock_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/clock"
	"github.com/droverhq/drover/internal/virtual"
	"pgregory.net/rapid"
)

// start is without a monotonic reading: local times made from it are counted by the wall, as the test says.
var start = time.Date(2026, 3, 28, 23, 59, 58, 0, time.UTC)

func TestZeroValue(t *testing.T) {
	var c clock.Server
	if !c.Now(start).IsZero() {
		t.Fatalf("got %v, want the zero time: nothing is due", c.Now(start))
	}
	c.Observe(time.Time{}, start)
	if !c.Now(start).IsZero() {
		t.Fatal("a message without a timestamp was taken for an observation")
	}
}

func TestServerClock(t *testing.T) {
	const travel = 3 * time.Millisecond
	for _, skew := range []time.Duration{0, 10 * time.Minute, -10 * time.Minute, 40 * 365 * 24 * time.Hour} {
		t.Run(fmt.Sprintf("P-15/local clock off by %v", -skew), func(t *testing.T) {
			var c clock.Server
			for i := range 1000 {
				local := start.Add(time.Duration(i) * time.Second)
				c.Observe(local.Add(skew-travel), local)
				if got, want := c.Now(local), local.Add(skew-travel); !got.Equal(want) {
					t.Fatalf("after %d s: got %v, want %v", i, got, want)
				}
			}
		})
	}
}

func TestServerWindows(t *testing.T) {
	type step struct {
		at     time.Duration // local, since start
		offset time.Duration // server - local of the observation; none when it is the minimum
		want   time.Duration // the estimate's offset
	}
	const none = time.Duration(-1 << 63)
	for _, tc := range []struct {
		name  string
		steps []step
	}{
		{"P-15/an old message does not set the clock back", []step{
			{0, -time.Second, -time.Second}, {time.Second, -time.Hour, -time.Second}, {2 * time.Second, -time.Millisecond, -time.Millisecond},
		}},
		{"P-15/the best of the previous window counts", []step{
			{0, 0, 0}, {time.Minute, 5, 5}, {2 * time.Minute, -5, 5}, {3 * time.Minute, -5, 5}, {4 * time.Minute, -5, -5},
		}},
		{"P-15/a server that was set back is followed within two windows", []step{
			{0, time.Hour, time.Hour}, {119 * time.Second, 0, time.Hour}, {121 * time.Second, 0, time.Hour}, {239 * time.Second, 0, time.Hour}, {241 * time.Second, 0, 0},
		}},
		{"P-15/the last estimate holds while nothing is heard", []step{
			{0, time.Second, time.Second}, {6 * time.Hour, none, time.Second}, {6*time.Hour + 1, 0, 0},
		}},
		{"P-15/a late observer still improves the estimate", []step{
			{3 * time.Minute, 1, 1}, {6 * time.Minute, 1, 1}, {time.Minute, 7, 7}, {0, 3, 7},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var c clock.Server
			for i, s := range tc.steps {
				local := start.Add(s.at)
				if s.offset != none {
					c.Observe(local.Add(s.offset), local)
				}
				if got := c.Now(local).Sub(local); got != s.want {
					t.Errorf("step %d, after %v: got an offset of %v, want %v", i, s.at, got, s.want)
				}
			}
		})
	}
}

// TestServerSetBackIsSeenAtTheNextExchange: an answer that is older than the estimate at the question proves that it is ahead.
func TestServerSetBackIsSeenAtTheNextExchange(t *testing.T) {
	const trip = 2 * time.Millisecond
	for name, by := range map[string]time.Duration{"an hour": time.Hour, "3 ms": 3 * time.Millisecond} {
		t.Run("P-15/"+name, func(t *testing.T) {
			var c clock.Server
			c.ObserveExchange(start, start.Add(trip/2), start.Add(trip))
			asked := start.Add(time.Second)
			answered := asked.Add(trip)
			server := asked.Add(trip/2 - by)
			c.ObserveExchange(asked, server, answered)
			if got, want := c.Now(answered), server; !got.Equal(want) {
				t.Errorf("got an estimate of %v, want %v", got, want)
			}
			if got, want := c.Latest(answered), server.Add(trip); !got.Equal(want) {
				t.Errorf("got %v as the latest, want %v", got, want)
			}
			c.Observe(start.Add(clock.Window-by), start.Add(clock.Window+trip)) // what was known before does not come back
			if got, want := c.Now(start.Add(clock.Window)).Sub(start.Add(clock.Window-by)), -trip/2; got != want {
				t.Errorf("in the next window the estimate is %v off, want %v", got, want)
			}
		})
	}
}

// TestServerIsNeverAhead draws a server that is off by any amount, messages that travel for any time, and questions
// between them.
func TestServerIsNeverAhead(t *testing.T) {
	t.Run("P-15", rapid.MakeCheck(func(t *rapid.T) {
		skew := time.Duration(rapid.Int64Range(-int64(1000*time.Hour), int64(1000*time.Hour)).Draw(t, "skew"))
		var c clock.Server
		best := time.Duration(1<<63 - 1) // shortest travel in the last two windows, at least
		now := start
		for range rapid.IntRange(1, 60).Draw(t, "messages") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(5*time.Second)).Draw(t, "pause")))
			travel := time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "travel"))
			c.Observe(now.Add(skew-travel), now)
			best = min(best, travel)
			truth := now.Add(skew)
			got := c.Now(now)
			if got.After(truth) {
				t.Fatalf("got %v, which is %v ahead of the server", got, got.Sub(truth))
			}
			if now.Sub(start) < 2*clock.Window && truth.Sub(got) != best {
				t.Fatalf("got an estimate %v after, want %v, the shortest travel", truth.Sub(got), best)
			}
		}
	}))
}

// TestServerIsNeverBehindLatest draws exchanges whose ways take any time, and messages between them: the true time lies between the
// estimates, which are no farther apart than the shortest exchange took.
func TestServerIsNeverAfterLatest(t *testing.T) {
	t.Run("P-15", rapid.MakeCheck(func(t *rapid.T) {
		skew := time.Duration(rapid.Int64Range(-int64(1000*time.Hour), int64(1000*time.Hour)).Draw(t, "skew"))
		var c clock.Server
		const never = time.Duration(1<<63 - 1)
		best := never // shortest exchange in the last two windows, at least
		now := start
		for range rapid.IntRange(1, 60).Draw(t, "messages") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(5*time.Second)).Draw(t, "pause")))
			there := time.Duration(rapid.Int64Range(0, int64(10*time.Second)).Draw(t, "there"))
			back := time.Duration(rapid.Int64Range(0, int64(10*time.Second)).Draw(t, "back"))
			if rapid.Bool().Draw(t, "exchange") {
				asked := now
				now = now.Add(there + back)
				c.ObserveExchange(asked, now.Add(skew-back), now)
				best = min(best, there+back)
			} else {
				c.Observe(now.Add(skew-back), now)
			}
			truth := now.Add(skew)
			early, late := c.Now(now), c.Latest(now)
			if early.After(truth) {
				t.Fatalf("got %v, which is %v ahead of the server", early, early.Sub(truth))
			}
			if now.Sub(start) >= 2*clock.Window {
				continue
			}
			if best != never && (late.Before(truth) || late.Sub(early) > best) {
				t.Fatalf("got up to %v, want at or after %v and at most %v after %v", late, truth, best, early)
			}
			if best == never && !late.Equal(early) {
				t.Fatalf("got up to %v without an exchange, want %v", late, early)
			}
		}
	}))
}

func TestLatestWindows(t *testing.T) {
	var c clock.Server
	if !c.Latest(start).IsZero() {
		t.Fatal("got a time before any observation")
	}
	for i, s := range []struct {
		at           time.Duration
		asked, heard time.Duration // server - local at both ends; no exchange if both are equal
		want         time.Duration
	}{
		{0, 9, 1, 9},
		{time.Minute, 7, 2, 7},
		{2 * time.Minute, 8, 0, 7}, // the best of the previous window counts
		{3 * time.Minute, 8, 0, 7},
		{4 * time.Minute, 8, 0, 8},
		{4*time.Minute + 1, time.Hour + 5, time.Hour, time.Hour}, // the server was set on
		{6*time.Minute + 2, 0, 0, time.Hour},
		{8*time.Minute + 3, 0, 0, 0}, // no exchange for two windows
		{20 * time.Minute, 3, 1, 3},
	} {
		local := start.Add(s.at)
		if s.asked == s.heard {
			c.Observe(local.Add(s.heard), local)
		} else {
			c.ObserveExchange(local.Add(s.heard-s.asked), local.Add(s.heard), local)
		}
		if got := c.Latest(local).Sub(local); got != s.want {
			t.Errorf("step %d, after %v: got an offset of %v, want %v", i, s.at, got, s.want)
		}
	}
}

// TestServerOnMonotonicReadings uses real readings: local time is counted by their monotonic part, and the answer has
// none, because it is the time of another machine.
func TestServerOnMonotonicReadings(t *testing.T) {
	t.Run("P-15", func(t *testing.T) {
		virtual.Run(t, func(t *testing.T) {
			var c clock.Server
			first := time.Now()
			c.Observe(first.Round(0).Add(time.Minute), first)
			time.Sleep(time.Hour)
			second := time.Now()
			if got, want := c.Now(second), first.Round(0).Add(61*time.Minute); !got.Equal(want) {
				t.Fatalf("got %v, want %v", got, want)
			}
			if got := c.Now(second); got != got.Round(0) {
				t.Fatal("the estimate has a local monotonic reading")
			}
		})
	})
}

func TestServerFromManyGoroutines(t *testing.T) {
	var c clock.Server
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				local := start.Add(time.Duration(i) * time.Second)
				c.Observe(local.Add(-time.Duration(g)), local)
				if got := c.Now(local); got.After(local) {
					t.Errorf("got %v at %v, want no later", got, local)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestServerDoesNotAllocate(t *testing.T) {
	var c clock.Server
	c.Observe(start, start)
	if n := testing.AllocsPerRun(100, func() {
		c.Observe(start.Add(-time.Millisecond), start)
		_ = c.Now(start)
	}); n != 0 {
		t.Fatalf("got %v allocations a message, want none", n)
	}
}

func BenchmarkServer(b *testing.B) {
	var c clock.Server
	local := time.Now()
	for b.Loop() {
		c.Observe(local.Add(-time.Millisecond), local)
		_ = c.Now(local)
	}
}

func ExampleServer() {
	var server clock.Server
	received := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) // the local clock is ten minutes slow
	server.Observe(received.Add(10*time.Minute), received)
	due := time.Date(2026, 1, 1, 12, 10, 30, 0, time.UTC)
	fmt.Println(due.Sub(server.Now(received.Add(20 * time.Second))))
	// Output: 10s
}
