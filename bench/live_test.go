package main

import "testing"

func TestLiveIsThatOfTheLastCollection(t *testing.T) {
	log := `time="2026-11-22T12:00:00Z" level=info msg="ready"
gc 1 @0.030s 3%: 0.05+1.2+0.1 ms clock, 0.1+0.5/0.9/0+0.2 ms cpu, 19->20->18 MB, 38 MB goal, 0 MB stacks, 0 MB globals, 2 P
gc 2 @9.112s 0%: 0.08+61+0.1 ms clock, 0.1+0/61/100+0.2 ms cpu, 301->310->228 MB, 457 MB goal, 0 MB stacks, 0 MB globals, 2 P (forced)
time="2026-11-22T12:00:09Z" level=info msg="a claim of 12->13->14 MB, said somebody"
`
	got, err := liveIn([]byte(log))
	if want := int64(228 << 20); err != nil || got != want {
		t.Errorf("got %d (%v), want %d", got, err, want)
	}
	if got, err := liveIn([]byte("level=info\n")); err == nil {
		t.Errorf("without a collection: got %d, want an error", got)
	}
}
