package drover

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/internal/runid"
	"github.com/droverhq/drover/schemas"
)

var (
	errEncode = errors.New("cannot be encoded")
	errDecode = errors.New("the result does not fit what it is decoded into")
)

// encode turns what a user hands over into a payload: bytes as they are, everything else as JSON,
// nil as nothing.
func encode(field string, v any) (schemas.Payload, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case schemas.Payload:
		return v, nil
	case []byte:
		return v, nil
	case json.RawMessage:
		return schemas.Payload(v), nil
	}
	p, err := schemas.JSONPayload(v)
	if err != nil {
		return nil, fmt.Errorf("%s %w: %w", field, errEncode, err)
	}
	return p, nil
}

// Payload returns the content of a payload that came from a history, a description or a decision
// task. One above [schemas.PayloadThreshold], or one that would not have fitted its message beside
// others, stands there as a reference, and is fetched and checked; every other one is returned as
// it is. Results and failures of [Run.Wait] and [Run.Result] are fetched already.
//
// Errors: [ErrNotFound] if it is gone with its run, [ErrUnavailable], [ErrTimeout], and ctx's own.
func (c *Client) Payload(ctx context.Context, p schemas.Payload) (schemas.Payload, error) {
	return c.resolve(ctx, query{verb: "download"}, p)
}

// whole returns an event with the payloads that it refers to.
func (c *Client) whole(ctx context.Context, q query, e schemas.Event) (schemas.Event, error) {
	return schemas.Whole(e, func(p schemas.Payload) (schemas.Payload, error) {
		return c.resolve(ctx, q, p)
	})
}

func (c *Client) resolve(ctx context.Context, q query, p schemas.Payload) (schemas.Payload, error) {
	content, err := c.payloads().Resolve(ctx, p)
	if err != nil {
		return nil, newError(q, err)
	}
	return content, nil
}

// spill hands over a payload that is too large for a request, and puts its reference in its place.
func (c *Client) spill(ctx context.Context, q query, field string, p *schemas.Payload) error {
	return spill(ctx, c.payloads().Spill, q, field, p)
}

func (c *Client) payloads() *payloads.Client {
	return payloads.NewClient(c.conn, c.namespace, c.timeout)
}

// spillStart hands over what is too large in a start: each payload that is, and then the larger one
// if the message does not take both. The input is removed by the service if that refuses the start.
func (c *Client) spillStart(ctx context.Context, q query, req *schemas.StartRequest) error {
	of := c.payloads().For(req.WorkflowID,
		cmp.Or(req.Run, runid.OfRequest(req.WorkflowID, req.RequestID)))
	err := spill(ctx, of.Spill, q, "input", &req.Input)
	if err != nil || req.Signal == nil {
		return err
	}
	const field = "signal.input"
	if err := c.spill(ctx, q, field, &req.Signal.Input); err != nil {
		return err
	}
	switch {
	case len(req.Input)+len(req.Signal.Input) <= payloads.MessageLimit(c.conn.MaxPayload()):
		return nil
	case len(req.Input) > len(req.Signal.Input):
		return spill(ctx, of.Move, q, "input", &req.Input)
	}
	return spill(ctx, c.payloads().Move, q, field, &req.Signal.Input)
}

func spill(
	ctx context.Context, by func(context.Context, schemas.Payload) (schemas.Payload, error),
	q query, field string, p *schemas.Payload,
) error {
	small, err := by(ctx, *p)
	if refusal, ok := errors.AsType[*schemas.Error](err); ok {
		about := *refusal
		about.Field = field
		err = &about
	}
	if err != nil {
		return newError(q, err)
	}
	*p = small
	return nil
}

// decode is the other way: pointers to bytes take them as they are, nil takes nothing.
func decode(p schemas.Payload, out any) error {
	if out == nil {
		return nil
	}
	var into *[]byte
	switch out := out.(type) {
	case *schemas.Payload:
		into = (*[]byte)(out)
	case *[]byte:
		into = out
	case *json.RawMessage:
		into = (*[]byte)(out)
	default:
		return p.Decode(out)
	}
	if into == nil {
		return fmt.Errorf("a nil %T takes nothing", out)
	}
	*into = p
	return nil
}
