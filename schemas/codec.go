package schemas

import (
	"reflect"

	"github.com/droverhq/drover/schemas/codec"
)

// Version is the first byte of every msgpack body and the "v" that JSON bodies may carry.
const Version = codec.Version

// Limits of every body.
const (
	// MaxDepth is how deep arrays and maps may nest.
	MaxDepth = codec.MaxDepth
	// MaxBody is the largest body that is looked at, in bytes.
	MaxBody = codec.MaxBody
)

// Errors of decoding. All of them mean that the body is at fault, never the reader; such a body is
// parked.
var (
	ErrEmpty     = codec.ErrEmpty
	ErrVersion   = codec.ErrVersion
	ErrMalformed = codec.ErrMalformed
	// ErrLater is wrapped beside ErrVersion where a later version may have written the body. What
	// begins with text or with zeros is no version's.
	ErrLater = codec.ErrLater
	// ErrUnknownField is wrapped by the errors of [UnmarshalStrict] about a field that there is
	// not.
	ErrUnknownField = codec.ErrUnknownField
)

// ContentType headers say how a requester wants its answer encoded.
const (
	ContentTypeHeader  = "Content-Type"
	ContentTypeMsgpack = "application/msgpack"
	ContentTypeJSON    = "application/json"
)

// LenientHeader says, in a message with a JSON body, that fields which Drover does not know are to
// be passed over, as all are in msgpack. Its value is "1".
const LenientHeader = "Drover-Lenient"

// Marshal encodes v as a msgpack body: the version byte, then the value. A [Record] is written in
// the compact form, which only records have.
func Marshal(v any) ([]byte, error) { return vocabulary.Encode(v) }

// MarshalTo encodes v as [Marshal] does, and calls use with the body, which may be read until that
// returns. It is for what is sent at once: such a body takes no memory of its own. Errors are those
// of encoding, or what use returns.
func MarshalTo(v any, use func(body []byte) error) error { return vocabulary.EncodeTo(v, use) }

// MarshalJSON encodes v as a JSON body.
func MarshalJSON(v any) ([]byte, error) { return vocabulary.EncodeJSON(v) }

// MarshalJSONTo encodes v as [MarshalJSON] does, and is otherwise like [MarshalTo].
func MarshalJSONTo(v any, use func(body []byte) error) error {
	return vocabulary.EncodeJSONTo(v, use)
}

// Unmarshal decodes a body, msgpack or JSON, into v, which is to be zero. Errors name the field
// where they can, and wrap [ErrEmpty], [ErrVersion] or [ErrMalformed].
func Unmarshal(b []byte, v any) error { return vocabulary.Decode(b, v, false) }

// UnmarshalOwned decodes as [Unmarshal] does. Texts and payloads in v may point into the body,
// which belongs to v from then on: nobody may write to it, and it stays as long as any of them. It
// is for messages that were received, and spares most of what decoding allocates.
func UnmarshalOwned(b []byte, v any) error { return vocabulary.Decode(b, v, true) }

// UnmarshalStrict is [Unmarshal] for what others send: a JSON body with a field that v does not
// have, at any depth, is an error, which names the field and the one that was probably meant (E6).
// Fields of an unknown decision are not judged. In msgpack unknown fields are passed over.
func UnmarshalStrict(b []byte, v any) error { return vocabulary.DecodeStrict(b, v, false) }

// UnmarshalStrictOwned is [UnmarshalStrict] and [UnmarshalOwned] in one.
func UnmarshalStrictOwned(b []byte, v any) error { return vocabulary.DecodeStrict(b, v, true) }

// CheckFields is [UnmarshalStrict] without the value, for a body that somebody else decodes.
func CheckFields(b []byte, like any) error {
	if !IsJSON(b) {
		return nil
	}
	return UnmarshalStrict(b, reflect.New(reflect.TypeOf(like).Elem()).Interface())
}

// CheckUTF8 is an error that wraps [ErrMalformed] for a JSON body with a byte that is not UTF-8,
// and names the field. The decoder would put U+FFFD in its place, and two ids that differ there
// only would be one (E15).
func CheckUTF8(b []byte) error { return codec.CheckUTF8(b) }

// Place tells which field of the JSON an error of [Unmarshal] is about, as a path such as
// activityDefaults.list; empty if it is about the whole, or the body is no JSON.
func Place(err error) string { return codec.Place(err) }

// IsJSON tells whether a body is a JSON object.
func IsJSON(b []byte) bool { return codec.IsJSON(b) }

// Scan checks the structure of one msgpack value that fills b: every declared length fits in what
// follows, nothing nests deeper than [MaxDepth], and there are no extension types. It allocates
// nothing. Errors wrap [ErrMalformed].
func Scan(b []byte) error { return codec.Scan(b) }

// Unpacked returns the body of a message with its payloads in plain sight, byte for byte, for
// whoever searches bodies without decoding them. Only records of histories are ever packed. An
// error wraps [ErrMalformed].
func Unpacked(body []byte) ([]byte, error) { return codec.Unpacked(body) }
