package main

import (
	"context"
	"time"
)

// memory is what a server with open workflows takes once all are idle, beside the same program holding nothing but streams with as many
// messages, of the same size, on the same subjects. In bytes; what is beyond is for each open workflow.
type memory struct {
	// RSS is that of the server, BareRSS that of the bare one. Beyond is by how much more the first grew since it was empty.
	RSS     int64   `json:"rss_bytes,omitempty"`
	BareRSS int64   `json:"bare_rss_bytes,omitempty"`
	Beyond  float64 `json:"beyond_bytes_per_workflow,omitempty"`
	// Live is what the last garbage collection of the server found alive, BareLive that of the bare one.
	Live       int64   `json:"live_bytes,omitempty"`
	BareLive   int64   `json:"bare_live_bytes,omitempty"`
	BeyondLive float64 `json:"beyond_live_bytes_per_workflow,omitempty"`
}

const (
	// restAsleep is how long everything is left alone before memory is read: the master reads new records every half minute, the NATS
	// server keeps what was read for ten seconds, and what was kept goes back to the machine behind that.
	restAsleep = 50 * time.Second
	// longRest is how long at the last point: NATS lets go of the index that it keeps for each block two minutes behind its last use, and has written the
	// state of all streams by then. Behind it memory still goes up and down with collections of garbage, so the median of lookFor counts.
	longRest  = 3*time.Minute + 20*time.Second
	lookFor   = time.Minute
	lookEvery = 3 * time.Second
)

// readMemory reads that of the server of a bench.
func (b *bench) readMemory() (rss, live int64, err error) {
	u, err := usageOf(b.procs["server"].Process.Pid)
	if err != nil {
		return 0, 0, err
	}
	live, err = b.live()
	return u.rss, live, err
}

// restedMemory reads it behind a long rest, of which restAsleep is over, for a while: its medians.
func (b *bench) restedMemory(ctx context.Context) (rss, live int64, err error) {
	if err := sleep(ctx, longRest-restAsleep); err != nil {
		return 0, 0, err
	}
	var all, alive []float64
	for range lookFor / lookEvery {
		rss, live, err := b.readMemory()
		if err != nil {
			return 0, 0, err
		}
		all, alive = append(all, float64(rss)), append(alive, float64(live))
		if err := sleep(ctx, lookEvery); err != nil {
			return 0, 0, err
		}
	}
	return int64(median(all)), int64(median(alive)), nil
}

// compare says what is beyond the bare server, for each of n workflows. The empty ones are the RSS of both before there was any.
func (m *memory) compare(n int, empty, bareEmpty int64) {
	m.Beyond = float64((m.RSS-empty)-(m.BareRSS-bareEmpty)) / float64(n)
	m.BeyondLive = float64(m.Live-m.BareLive) / float64(n)
}
