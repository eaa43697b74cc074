package cli

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

func TestExitCodes(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, ExitDone},
		{errors.New("x"), ExitFailed},
		{&drover.WorkflowError{Status: schemas.StatusTimedOut}, ExitFailed},
		{fmt.Errorf("verify: %w", natsconn.ErrNoConnection), ExitNoConnection},
		{fmt.Errorf("verify: %w", natsconn.ErrDisconnected), ExitNoConnection},
		{fmt.Errorf("verify: %w", natsconn.ErrTimeout), ExitTimeout},
		{fmt.Errorf("verify: %w", natsconn.ErrNoResponders), ExitNoConnection},
		{&drover.Error{Err: fmt.Errorf("%w: %w", natsconn.ErrNoResponders, context.Canceled)}, ExitNoConnection}, // interrupted while nobody was there
		{&drover.Error{Code: schemas.CodeNotFound, Err: natsconn.ErrNoResponders}, ExitFailed},                   // such as a node that does not listen
		{Usage(nil, errors.New("x")), ExitUsage},
	} {
		if got := ExitCode(tt.err); got != tt.want {
			t.Fatalf("%v: got %d, want %d", tt.err, got, tt.want)
		}
	}
}
