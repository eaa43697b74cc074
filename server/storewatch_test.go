package server

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
)

// What a start on a full disk has led to is told as that, and nothing else is.
func TestStartOnAFullDisk(t *testing.T) { // E7
	const full = "disk full: the file system of /store has 4 KiB free of 100 KiB"
	for _, tt := range []struct {
		name string
		err  error
		told bool
	}{
		{"a full store", &natsconn.APIError{Code: 503, ErrCode: 10023, Description: "insufficient resources"}, true},
		{"a stream that cannot be made", topology.ErrRefused, true},
		{"a write", syscall.ENOSPC, true},
		{"a write, as the NATS server says it", errUnwritten, true},
		{"options", topology.Options{Partitions: -1}.Validate(), false},
		{"another reason", errors.New("another reason"), false},
	} {
		got := explainDisk(full, tt.err)
		if told := strings.HasPrefix(got.Error(), full+": make room there"); told != tt.told || !errors.Is(got, tt.err) {
			t.Errorf("%s: got %q, want the disk to be named: %v", tt.name, got, tt.told)
		}
		if strings.Contains(got.Error(), "10023") {
			t.Errorf("%s: got %q, want no code", tt.name, got)
		}
		if got := explainDisk("", tt.err); !errors.Is(got, tt.err) || got.Error() != tt.err.Error() {
			t.Errorf("%s, on a disk with room: got %v, want the error as it is", tt.name, got)
		}
	}
	if err := explainDisk(full, nil); err != nil {
		t.Errorf("got %v of no error", err)
	}
}
