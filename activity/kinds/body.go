package kinds

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/droverhq/drover/schemas"
)

// content is what is sent for a body: a JSON string as its text, any other JSON as it is, and other
// text or bytes as they are. isJSON tells the second.
func content(p schemas.Payload) (body []byte, isJSON bool) {
	trimmed := bytes.TrimSpace(p)
	if len(trimmed) == 0 || !json.Valid(trimmed) {
		return p, false
	}
	var s string
	if trimmed[0] == '"' && json.Unmarshal(trimmed, &s) == nil {
		return []byte(s), false
	}
	return p, true
}

// answered is the inverse: JSON that is said to be JSON stays what it is, text becomes a JSON
// string, other bytes stay.
func answered(body []byte, saidJSON bool) schemas.Payload {
	switch {
	case len(body) == 0:
		return nil
	case saidJSON && json.Valid(body):
		return body
	case !utf8.Valid(body):
		return body
	}
	text, err := json.Marshal(string(body))
	if err != nil {
		return body // text that no JSON can hold: there is none
	}
	return text
}

// validHeader tells whether a name and a value can be sent in one line.
func validHeader(name, value string) bool {
	const signs = "!#$%&'*+-.^_`|~"
	for _, c := range []byte(name) {
		if ('a' > c || c > 'z') && ('A' > c || c > 'Z') && ('0' > c || c > '9') &&
			!strings.Contains(signs, string(rune(c))) {
			return false
		}
	}
	for _, c := range []byte(value) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return name != ""
}
