package embedded

import (
	"sync"

	"github.com/nats-io/nats-server/v2/server/ats"
)

// RegisterTicker prepares a test binary for servers inside testing/synctest bubbles, and returns
// what undoes it.
//
// The server's file and memory stores share one ticker of the whole process. The first store starts
// it, the last one stops it, so it would be born in one bubble and be used in the next, which
// synctest forbids. Call RegisterTicker in TestMain, outside every bubble:
//
//	func TestMain(m *testing.M) {
//		defer embedded.RegisterTicker()()
//		m.Run()
//	}
func RegisterTicker() (unregister func()) {
	ats.Register()
	return sync.OnceFunc(ats.Unregister)
}
