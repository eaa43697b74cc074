package natsconn

import "github.com/droverhq/drover/schemas"

// Decode decodes what others have sent. A JSON body with a field that is not known is refused,
// unless its headers say that such are to be passed over ([schemas.LenientHeader]). Errors are
// those of [schemas.Unmarshal].
func Decode(h Header, body []byte, v any) error {
	if Lenient(h) {
		return schemas.Unmarshal(body, v)
	}
	return schemas.UnmarshalStrict(body, v)
}

// Lenient tells whether unknown fields of a JSON body are to be passed over.
func Lenient(h Header) bool { return len(h) > 0 && h.Get(schemas.LenientHeader) == "1" }
