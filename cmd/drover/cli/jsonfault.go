package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// checkJSON tells why body is no JSON, and where: lines and columns begin at 1, and a column is a
// letter, not a byte. It judges the form alone: numbers that are too large for a float64 are JSON.
// Bytes that are not UTF-8 are refused, since what is sent with them would be kept as bytes.
func checkJSON(body []byte) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return errors.New("it is empty")
	}
	if bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		return fmt.Errorf("%s: it begins with a byte order mark: save it without", placeOf(body, 0))
	}
	for i := 0; i < len(body); {
		r, n := utf8.DecodeRune(body[i:])
		if r == utf8.RuneError && n == 1 {
			return fmt.Errorf("%s: the byte 0x%02x is not UTF-8", placeOf(body, i), body[i])
		}
		i += n
	}
	return faultOf(body, json.Unmarshal(body, new(json.RawMessage)))
}

// faultOf puts the place in body in front of what the decoder says, without the names that things
// have in Go.
func faultOf(body []byte, err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what := cmp.Or(wrong.Field, "all of it")
		return fmt.Errorf("%s: %s is of the kind %s, which does not belong there",
			placeOf(body, int(wrong.Offset)-1), what, wrong.Value)
	}
	wrong, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return err
	}
	text := bytes.TrimRight(body, " \t\r\n")
	// A byte that may stand nowhere is the first at fault after a text that was right as far as it
	// went. The decoder has two errors for that.
	if end, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(append(bytes.Clone(text), 1),
		new(json.RawMessage))); ok && int(end.Offset) > len(text) {
		return fmt.Errorf("%s: it ends too early", placeOf(body, len(text)))
	}
	return fmt.Errorf("%s: %w", placeOf(body, int(wrong.Offset)-1), err)
}

// placeOf names the place of the byte at i.
func placeOf(body []byte, i int) string {
	before := body[:max(min(i, len(body)), 0)]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("line %d, column %d", line, column)
}
