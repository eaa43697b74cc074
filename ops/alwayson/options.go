package alwayson

import (
	"context"
	"errors"
	"fmt"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/schemas/ops"
)

// ErrInvalidOptions reports options that leave their bounds. The text names the field and the way
// out.
var ErrInvalidOptions = errors.New("invalid options")

// Options of [New].
type Options struct {
	// Conn reads and writes records, starts runs and answers. Required.
	Conn *natsconn.Conn
	// Namespace whose always-on workflows are kept running. Required.
	Namespace subject.Namespace
	// RequireTypes tells that the namespace demands registered types, so that others are refused
	// when they are added. Defaults to false: then the first start is refused.
	RequireTypes bool
	// Note is told what was done. Defaults to nobody.
	Note func(context.Context, ops.Operation)
	// Before is called before each write and each request that changes something, with what it
	// does; an error ends [Monitor.Run] there, as a crash would. For tests. Defaults to none.
	Before func(what string) error
	// Logger is told what goes wrong. Defaults to none.
	Logger logrus.FieldLogger
}

func (o Options) withDefaults() Options {
	if o.Note == nil {
		o.Note = func(context.Context, ops.Operation) {}
	}
	if o.Before == nil {
		o.Before = func(string) error { return nil }
	}
	o.Logger = logx.Or(o.Logger)
	return o
}

func (o Options) validate() error {
	if o.Conn == nil {
		return fmt.Errorf("alwayson: %w: Conn is nil: dial the NATS server of the namespace",
			ErrInvalidOptions)
	}
	if err := subject.ValidateNamespace(string(o.Namespace)); err != nil {
		return fmt.Errorf("alwayson: %w: Namespace: %w", ErrInvalidOptions, err)
	}
	return nil
}
