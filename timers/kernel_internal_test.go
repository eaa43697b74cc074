//go:build linux

package timers

import (
	"testing"
	"time"
)

// The kernel's timer wakes who waits for alarms, and only who has asked for one has one.
func TestKernelTimerWakes(t *testing.T) {
	s := &spell{Worker: &Worker{opts: Options{KernelTimers: true}}, wake: make(chan struct{}, 1)}
	k := s.kernelTimer()
	defer k.Close()
	k.Reset(time.Millisecond)
	<-s.wake // or the test waits for ever
	s.opts.KernelTimers = false
	if k := s.kernelTimer(); k != nil {
		k.Close()
		t.Error("got a timer of the kernel that nobody has asked for, want none: it does not know virtual time")
	}
}
