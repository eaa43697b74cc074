package topology

import (
	"context"
	"errors"

	"github.com/droverhq/drover/broker/natsconn"
)

// untilRefused ends the calls of the client library, which would wait for their whole time, when
// the server refuses a request to this user. The error of such a call goes through [orRefused].
func untilRefused(ctx context.Context, conn *natsconn.Conn) (context.Context, context.CancelFunc) {
	return conn.UntilRefused(ctx, "$JS.API.")
}

// orRefused is err, or the refusal that cut the call short.
func orRefused(ctx context.Context, err error) error {
	if refused, ok := errors.AsType[*natsconn.RefusedError](context.Cause(ctx)); ok && err != nil {
		return refused
	}
	return err
}
