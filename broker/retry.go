package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/sleep"
)

// startPatience is how long a broker that begins waits for a server that gives no answer of use.
const startPatience = time.Minute

// retry does what a broker needs before it serves. A cluster that has lost a server may be without a leader for longer than a
// read waits: some of its servers say nothing then, others that they are temporarily unavailable. A broker that is started in that
// moment goes on asking, each time for readTimeout at most; any other refusal ends it at once.
func retry[T any](ctx context.Context, log logrus.FieldLogger, begin func(context.Context) (T, error)) (T, error) {
	for began := time.Now(); ; {
		try, cancel := context.WithTimeout(ctx, readTimeout)
		v, err := begin(try)
		cancel()
		if err == nil {
			return v, nil
		}
		passes := natsconn.Transient(err) || errors.Is(err, context.DeadlineExceeded) // that of the try
		if !passes || time.Since(began) > startPatience || sleep.For(ctx, time.Second) != nil {
			return v, fmt.Errorf("%w; make the namespace first", err)
		}
		log.WithError(err).Warn("the server gives no answer of use, a leader may be missing; trying again")
	}
}
