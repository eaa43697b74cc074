package natsconn

import (
	"context"
	"fmt"
	"time"

	"github.com/droverhq/drover/internal/sleep"
)

// drainLook is how often Drain looks whether the connection has ended.
const drainLook = 2 * time.Millisecond

// Drain ends every subscription of the connection, lets what was received be handled, and closes
// the connection: nothing that the server has sent here is lost. A connection that is down,
// borrowed, or in the process of its server, ends with the next Close instead: the library's drain
// uses its process-wide timers; see the package comment on virtual time.
func (c *Conn) Drain(ctx context.Context) error {
	if c.inProcess || c.borrowed || !c.nc.IsConnected() {
		return nil
	}
	c.mu.Lock()
	c.draining = true
	c.mu.Unlock()
	if err := c.nc.Drain(); err != nil {
		return fmt.Errorf("drain: %w", fromNATS(err))
	}
	for !c.nc.IsClosed() {
		if sleep.For(ctx, drainLook) != nil {
			return fmt.Errorf("drain: %w", ctx.Err())
		}
	}
	return nil
}
