package natsconn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/internal/sleep"
)

const (
	// startPatience is how long a broker that begins waits for a server that gives no answer of
	// use.
	startPatience = time.Minute
	// startTry bounds one try.
	startTry = 10 * time.Second
)

// Retry does what a program needs before it serves. A cluster that has lost a server may be without
// a leader for longer than a read waits: some of its servers say nothing then, others that they are
// temporarily unavailable. A program that is started in that moment goes on asking for a minute;
// any other refusal ends it at once.
func Retry[T any](
	ctx context.Context, log logrus.FieldLogger, begin func(context.Context) (T, error),
) (T, error) {
	for began := time.Now(); ; {
		try, cancel := context.WithTimeout(ctx, startTry)
		v, err := begin(try)
		cancel()
		if err == nil {
			return v, nil
		}
		passes := Transient(err) || errors.Is(err, context.DeadlineExceeded) // that of the try
		if !passes || time.Since(began) > startPatience || sleep.For(ctx, time.Second) != nil {
			return v, fmt.Errorf("%w; make the namespace first", err)
		}
		log.WithError(err).
			Warn("the server gives no answer of use, a leader may be missing; trying again")
	}
}
