package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// What is alive cannot be seen from outside a process: its memory has holes, garbage and the collector's tables as well. The runtime tells
// of it with each collection, if it is asked to. A server that has come to rest collects by itself (internal/lean).

// trace has a server tell of its collections, if this bench wants that.
func (b *bench) trace(cmd *exec.Cmd) {
	if b.traced {
		cmd.Env = append(os.Environ(), "GODEBUG=gctrace=1")
	}
}

// collection is a line of the runtime about a garbage collection; the last size is what it found alive, in MiB.
var collection = regexp.MustCompile(`(?m)^gc \d+ @.*, \d+->\d+->(\d+) MB, `)

// live is what the last collection of the server found alive, in bytes.
func (b *bench) live() (int64, error) {
	log, err := os.ReadFile(filepath.Join(b.dir, "server.log"))
	if err != nil {
		return 0, err
	}
	size, err := liveIn(log)
	if err != nil {
		return 0, fmt.Errorf("the log of the server: %w", err)
	}
	return size, nil
}

func liveIn(log []byte) (int64, error) {
	all := collection.FindAllSubmatch(log, -1)
	if len(all) == 0 {
		return 0, fmt.Errorf("no garbage collection in %d bytes", len(log))
	}
	n, err := strconv.ParseInt(string(all[len(all)-1][1]), 10, 64)
	return n << 20, err
}
