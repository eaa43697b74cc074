package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// recovered refuses a store one of whose streams holds messages and was not recovered. A stream
// folder without messages is what a crash in the middle of making the stream leaves; it is
// harmless.
func (s *Server) recovered(before []streamDir) error {
	if s.Clustered() {
		if lost := s.unrecovered(before); len(lost) > 0 {
			return fmt.Errorf(
				"%w: the NATS server could not recover %s: move the whole store away, so that "+
					"the other nodes fill this one anew, "+
					"and only while all of them are up; or restore it from a backup",
				ErrStoreDamaged, strings.Join(lost, ", "))
		}
		return nil
	}
	var lost []string
	for _, e := range s.unhealthy() {
		if e.Type != server.HealthzErrorStream {
			s.log.Warnf("embedded server: %s", e.Error)
			continue
		}
		dir := filepath.Join(s.store.dir, server.JetStreamStoreDir, e.Account, "streams", e.Stream)
		if hasMessages(dir) {
			lost = append(lost, dir)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	slices.Sort(lost)
	return fmt.Errorf(
		"%w: the NATS server could not recover %s: restore it from a backup, or move it away to "+
			"go on without its messages", ErrStoreDamaged, strings.Join(lost, ", "))
}

// unhealthy is what keeps the server from doing its work: a stream that could not be recovered or
// can no longer be written. After a full disk the server stays so until it is started again.
func (s *Server) unhealthy() []server.HealthzError {
	var errs []server.HealthzError
	// The server gives its own listener a millisecond to look ready, which a busy machine may miss.
	for range 20 {
		errs = s.srv.Healthz(&server.HealthzOptions{Details: true}).Errors
		if !slices.ContainsFunc(errs,
			func(e server.HealthzError) bool { return e.Type == server.HealthzErrorConn }) {
			break
		}
	}
	// The server renames what it deletes to a name with a dot, and removes it in the background.
	return slices.DeleteFunc(errs,
		func(e server.HealthzError) bool { return strings.HasPrefix(e.Stream, ".") })
}

func hasMessages(streamDir string) bool {
	return slices.ContainsFunc(matches(streamDir, "msgs", "*.blk"), func(b string) bool {
		fi, err := os.Stat(b)
		return err == nil && fi.Size() > 0
	})
}
