package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/droverhq/drover/internal/bufpool"
)

// Version is the first byte of every msgpack body and the "v" that JSON bodies may carry.
const Version = 1

// Errors of decoding. All of them mean that the body is at fault, never the reader; such a body is
// parked.
var (
	ErrEmpty     = errors.New("schemas: the body is empty")
	ErrVersion   = errors.New("schemas: unknown version")
	ErrMalformed = errors.New("schemas: the body is malformed")
	// ErrLater is wrapped beside ErrVersion where a later version may have written the body. What
	// begins with text or with zeros is no version's.
	ErrLater = errors.New("schemas: a later version")
)

// laterError is an error that wraps ErrLater and does not say so twice.
type laterError struct{ error }

func (e laterError) Unwrap() []error { return []error{e.error, ErrLater} }

// ifLater is the way out of what is wrapped in [ErrVersion], for whoever has not written it.
const ifLater = "if a later Drover has written it, update this one"

// Encode encodes v as a msgpack body: the version byte, then the value. A record is written in the
// compact form, which only records have.
func (c *Codec) Encode(v any) ([]byte, error) {
	if c.record.is(v) {
		return c.marshalRecord(v)
	}
	r := bufpool.Get()
	defer r.Put()
	b, err := c.AppendNamed(r.Bytes(), v)
	if err != nil {
		return nil, err
	}
	return r.Keep(b), nil
}

// EncodeTo encodes v as [Codec.Encode] does, and calls use with the body, which may be read until
// that returns. It is for what is sent at once: such a body takes no memory of its own. Errors are
// those of encoding, or what use returns.
func (c *Codec) EncodeTo(v any, use func(body []byte) error) error {
	if c.record.is(v) {
		return c.recordTo(v, func(r *bufpool.Buffer, b []byte) error { return use(r.Use(b)) })
	}
	r := bufpool.Get()
	defer r.Put()
	b, err := c.AppendNamed(r.Bytes(), v)
	if err != nil {
		return err
	}
	return use(r.Use(b))
}

// AppendNamed appends the msgpack body of v with the names of the fields, for records too.
func (c *Codec) AppendNamed(b []byte, v any) ([]byte, error) {
	e := encoder{c: c, b: append(b, Version)}
	var err error
	if p, value := c.planned(v); p != nil {
		err = e.value(p, value)
	} else {
		err = e.other(v)
	}
	if err != nil {
		return nil, fmt.Errorf("schemas: encode %T: %w", v, err)
	}
	return e.b, nil
}

// EncodeJSON encodes v as a JSON body.
func (c *Codec) EncodeJSON(v any) ([]byte, error) {
	r := bufpool.Get()
	defer r.Put()
	b, err := c.appendJSON(r.Bytes(), v)
	if err != nil {
		return nil, err
	}
	return r.Keep(b), nil
}

// EncodeJSONTo encodes v as [Codec.EncodeJSON] does, and is otherwise like [Codec.EncodeTo].
func (c *Codec) EncodeJSONTo(v any, use func(body []byte) error) error {
	r := bufpool.Get()
	defer r.Put()
	b, err := c.appendJSON(r.Bytes(), v)
	if err != nil {
		return err
	}
	return use(r.Use(b))
}

func (c *Codec) appendJSON(b []byte, v any) ([]byte, error) {
	e := jsonEncoder{c: c, b: b}
	if p, value := c.planned(v); p != nil {
		e.value(p, value)
	} else {
		var plain []byte
		plain, e.err = json.Marshal(v)
		e.b = append(e.b, plain...)
	}
	if e.err != nil {
		return nil, fmt.Errorf("schemas: encode %T: %w", v, e.err)
	}
	return e.b, nil
}

// Decode decodes a body, msgpack or JSON, into v, which is to be zero. An owned body belongs to v
// from then on: texts and payloads in v may point into it. Errors name the field where they can,
// and wrap [ErrEmpty], [ErrVersion] or [ErrMalformed].
func (c *Codec) Decode(b []byte, v any, owned bool) error {
	switch {
	case len(b) == 0:
		return ErrEmpty
	case IsJSON(b):
		return c.unmarshalJSON(b, v, owned)
	case b[0] == versionCompact, b[0] == versionPacked:
		if c.record.is(v) {
			return c.decodeRecord(b[0], b[1:], v, owned)
		}
		return fmt.Errorf(
			"%w: the first byte is %#02x, which only records have; want %#02x (msgpack) or '{' (JSON)",
			ErrVersion, b[0], Version)
	case b[0] >= ' ' && b[0] <= '~':
		// somebody has written text, or JSON that is no object; no later version begins so
		return fmt.Errorf(
			"%w: it begins with %q; want one JSON object, which begins with '{', or msgpack after %#02x",
			ErrVersion, b[0], Version)
	case b[0] > Version && b[0] < ' ':
		return laterError{
			fmt.Errorf("%w: the first byte is %#02x; want %#02x (msgpack) or '{' (JSON); "+ifLater,
				ErrVersion, b[0], Version),
		}
	case b[0] != Version:
		return fmt.Errorf("%w: the first byte is %#02x; want %#02x (msgpack) or '{' (JSON); "+
			ifLater, ErrVersion, b[0], Version)
	}
	if c.ByPlan(b[1:], v, owned) {
		return nil
	}
	if err := Scan(b[1:]); err != nil {
		return err
	}
	return ByLibrary(b[1:], v)
}

// IsJSON tells whether a body is a JSON object.
func IsJSON(b []byte) bool {
	for _, c := range b {
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		}
		return c == '{'
	}
	return false
}

func (c *Codec) unmarshalJSON(b []byte, v any, owned bool) error {
	var head struct {
		V *int `json:"v"`
	}
	if c.JSONByPlan(b, v, owned, false) {
		return nil
	}
	if err := scanJSON(b); err != nil {
		return err
	}
	// Names are found in any case and with escapes, and the last one counts, as for all fields.
	if err := json.Unmarshal(b, &head); err == nil && head.V != nil && *head.V != Version {
		err = fmt.Errorf("%w: \"v\" is %d; want %d; "+ifLater, ErrVersion, *head.V, Version)
		if *head.V > Version {
			err = laterError{err}
		}
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, Located(b, v, err))
	}
	return nil
}

// ByLibrary runs the msgpack decoder over a body that Scan has passed. The decoder is known to
// panic on some shapes that do not fit the target, so a panic is an error of the body.
func ByLibrary(b []byte, v any) (err error) {
	dec := msgpack.GetDecoder()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrMalformed, r)
		}
		// One that failed may be in the midst of recording raw bytes, and its Reset does not end
		// that.
		if err == nil {
			msgpack.PutDecoder(dec)
		}
	}()
	dec.Reset(bytes.NewReader(b))
	dec.SetCustomStructTag("json")
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}
