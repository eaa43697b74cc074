package drover_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// Of a write that nobody has answered it is said once that its outcome is unknown; a read has none, and nothing of it may still be done.
func TestOnlyWritesHaveAnOutcome(t *testing.T) {
	calls := map[string]struct {
		write bool
		do    func(ctx context.Context, c *drover.Client) error
	}{
		"start": {true, func(ctx context.Context, c *drover.Client) error {
			_, err := c.Start(ctx, "order", nil, nil)
			return err
		}},
		"signal":    {true, func(ctx context.Context, c *drover.Client) error { return c.Run("a", "r").Signal(ctx, "go", nil) }},
		"cancel":    {true, func(ctx context.Context, c *drover.Client) error { return c.Run("a", "r").Cancel(ctx, "") }},
		"terminate": {true, func(ctx context.Context, c *drover.Client) error { return c.Run("a", "r").Terminate(ctx, nil) }},
		"pause":     {true, func(ctx context.Context, c *drover.Client) error { return c.Run("a", "r").Pause(ctx, "") }},
		"pause, of which it is asked first which run it is": {false, func(ctx context.Context, c *drover.Client) error {
			return c.Run("a", "").Pause(ctx, "")
		}},
		"delete type": {true, func(ctx context.Context, c *drover.Client) error {
			return c.DeleteType(ctx, schemas.WorkflowKind, "order", "")
		}},
		"create namespace": {true, func(ctx context.Context, c *drover.Client) error {
			_, err := c.CreateNamespace(ctx, "shop", nil)
			return err
		}},
		"describe": {false, func(ctx context.Context, c *drover.Client) error {
			_, err := c.Run("a", "").Describe(ctx)
			return err
		}},
		"why": {false, func(ctx context.Context, c *drover.Client) error {
			_, err := c.Run("a", "").Why(ctx)
			return err
		}},
		"result": {false, func(ctx context.Context, c *drover.Client) error { return c.Run("a", "").Result(ctx, nil) }},
		"list": {false, func(ctx context.Context, c *drover.Client) error {
			for _, err := range c.List(ctx, drover.ListOptions{}) {
				return err
			}
			return nil
		}},
		"history": {false, func(ctx context.Context, c *drover.Client) error {
			for _, err := range c.Run("a", "r").History(ctx, drover.HistoryOptions{}) {
				return err
			}
			return nil
		}},
		"count": {false, func(ctx context.Context, c *drover.Client) error {
			_, _, err := c.Count(ctx, drover.ListOptions{})
			return err
		}},
		"list types": {false, func(ctx context.Context, c *drover.Client) error {
			for _, err := range c.ListTypes(ctx, drover.TypeListOptions{}) {
				return err
			}
			return nil
		}},
		"list namespaces": {false, func(ctx context.Context, c *drover.Client) error {
			for _, err := range c.ListNamespaces(ctx) {
				return err
			}
			return nil
		}},
		"describe namespace": {false, func(ctx context.Context, c *drover.Client) error {
			_, err := c.DescribeNamespace(ctx, "shop")
			return err
		}},
	}
	virtual.Run(t, func(t *testing.T) {
		c, s := newService(t, drover.Options{})
		for _, everything := range []string{"drover.>", "drover-server.>"} {
			if _, err := s.conn.Subscribe(everything, "", func(natsconn.Msg) {}); err != nil {
				t.Fatal(err)
			}
		}
		// The server must know the interest first, or the first call finds nobody.
		if _, err := s.conn.Request(t.Context(), "nobody", nil, nil); !errors.Is(err, natsconn.ErrNoResponders) {
			t.Fatalf("got %v, want ErrNoResponders", err)
		}
		for name, tt := range calls {
			err := tt.do(bounded(t, 5*time.Second), c)
			wantError(t, err, drover.ErrTimeout)
			if n := strings.Count(err.Error(), "the outcome is unknown"); n > 1 || (n == 1) != tt.write {
				t.Errorf("%s: got %q, which says %d times that the outcome is unknown; is it a write: %v", name, err, n, tt.write)
			}
			if strings.Contains(err.Error(), "may still be done") && !tt.write {
				t.Errorf("%s: got %q of a read", name, err)
			}
		}
	})
}
