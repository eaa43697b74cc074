package broker

import (
	"slices"
	"testing"
	"unsafe"
)

// The largest pieces that are allocated for each message do not have the sizes of what stays in NATS's index of subjects (ADR 0047): the garbage of these would
// leave holes between the index's nodes, in memory that nobody can give back.
func TestGarbageHasOtherSizes(t *testing.T) {
	// The size classes of Go's allocator, up to the largest of a node but the rare ones.
	classes := []uintptr{8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 288, 320, 352, 384}
	index := []uintptr{32, 48, 96, 208, 320} // leaves of a stream and of a block, nodes of 4, 10 and 16
	for name, size := range map[string]uintptr{
		"envelope":   unsafe.Sizeof(envelope{}),
		"received":   unsafe.Sizeof(received{}),
		"sent alarm": unsafe.Sizeof(sentAlarm{}),
	} {
		class := classes[slices.IndexFunc(classes, func(c uintptr) bool { return c >= size })]
		if slices.Contains(index, class) {
			t.Errorf("%s takes %d of %d bytes, as nodes and leaves of NATS's index do: make it larger or smaller", name, size, class)
		}
	}
}
