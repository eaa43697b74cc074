package codec

import (
	"encoding/binary"
	"fmt"
)

// Limits of every body.
const (
	// MaxDepth is how deep arrays and maps may nest.
	MaxDepth = 48
	// maxJSONDepth is the same for JSON bodies. Payloads are JSON of the user's, so these may nest
	// deeper than the envelopes do; a payload that nests deeper than MaxPayloadDepth is wrapped as
	// text.
	maxJSONDepth    = 8 * MaxDepth
	MaxPayloadDepth = maxJSONDepth - MaxDepth
	// MaxBody is the largest body that is looked at, in bytes.
	MaxBody = 64 << 20
)

// Scan checks the structure of one msgpack value that fills b: every declared length fits in what
// follows, nothing nests deeper than [MaxDepth], and there are no extension types. It allocates
// nothing. Errors wrap [ErrMalformed].
//
// Extension types are refused because the vocabulary has none and the decoder steps into one where
// it looks for the length of a map: to it the content of an extension is the map, while here it
// would be opaque bytes.
//
// It is iterative, since a recursive scan would be the next victim of deep nesting.
func Scan(b []byte) error {
	if len(b) > MaxBody {
		return fmt.Errorf("%w: %d bytes exceed the limit of %d", ErrMalformed, len(b), MaxBody)
	}
	end, err := scan(b, 0, MaxDepth)
	if err == nil && end != len(b) {
		err = fmt.Errorf("%w: %d bytes follow the value", ErrMalformed, len(b)-end)
	}
	return err
}

// scan checks the value at pos, which may nest as deep as told, at most MaxDepth. It returns where
// the value ends.
func scan(b []byte, pos, deepest int) (end int, err error) {
	var open [MaxDepth]uint64 // values still due at each depth
	depth := 0
	open[0] = 1
	for {
		for open[depth] == 0 {
			if depth == 0 {
				return pos, nil
			}
			depth--
		}
		open[depth]--
		skip, children, err := head(b, pos)
		if err != nil {
			return pos, err
		}
		pos += skip
		if children > uint64(len(b)-pos) {
			return pos, fmt.Errorf("%w: %d elements are declared at byte %d, %d bytes are left",
				ErrMalformed, children, pos, len(b)-pos)
		}
		if children > 0 {
			if depth++; depth == deepest {
				return pos, fmt.Errorf("%w: nested deeper than %d", ErrMalformed, deepest)
			}
			open[depth] = children
		}
	}
}

// head reads the value head at pos: how many bytes it takes with its scalar content, and how many
// values it contains.
func head(b []byte, pos int) (skip int, children uint64, err error) {
	if pos >= len(b) {
		return 0, 0, truncated(pos)
	}
	c := b[pos]
	switch {
	case c <= 0x7f || c >= 0xe0 || c == 0xc0 || c == 0xc2 || c == 0xc3: // fixint, nil, bool
		return 1, 0, nil
	case c <= 0x8f: // fixmap
		return 1, 2 * uint64(c&0x0f), nil
	case c <= 0x9f: // fixarray
		return 1, uint64(c & 0x0f), nil
	case c <= 0xbf: // fixstr
		return scalar(b, pos, 1, uint64(c&0x1f))
	case c == 0xc1:
		return 0, 0, fmt.Errorf("%w: byte 0xc1 at %d", ErrMalformed, pos)
	case c >= 0xc7 && c <= 0xc9 || c >= 0xd4 && c <= 0xd8:
		return 0, 0, fmt.Errorf("%w: an extension type at byte %d; the vocabulary has none",
			ErrMalformed, pos)
	}
	size := headSizes[c-0xc0]
	if pos+1+int(size.length) > len(b) {
		return 0, 0, truncated(pos)
	}
	n := number(b[pos+1:], int(size.length))
	if size.container > 0 {
		return 1 + int(size.length), n * uint64(size.container), nil
	}
	return scalar(b, pos, 1+int(size.length), n+uint64(size.fixed))
}

// headSizes describes 0xc0 … 0xdf: bytes of length, fixed bytes besides, values per element of a
// container.
var headSizes = [32]struct{ length, fixed, container uint8 }{
	0x04: {length: 1}, 0x05: {length: 2}, 0x06: {length: 4}, // bin
	0x0a: {fixed: 4}, 0x0b: {fixed: 8}, // float
	0x0c: {fixed: 1}, 0x0d: {fixed: 2}, 0x0e: {fixed: 4}, 0x0f: {fixed: 8}, // uint
	0x10: {fixed: 1}, 0x11: {fixed: 2}, 0x12: {fixed: 4}, 0x13: {fixed: 8}, // int
	0x19: {length: 1}, 0x1a: {length: 2}, 0x1b: {length: 4}, // str
	0x1c: {length: 2, container: 1}, 0x1d: {length: 4, container: 1}, // array
	0x1e: {length: 2, container: 2}, 0x1f: {length: 4, container: 2}, // map
}

func scalar(b []byte, pos, headLen int, n uint64) (int, uint64, error) {
	if n > uint64(len(b)-pos-headLen) {
		return 0, 0, truncated(pos)
	}
	return headLen + int(n), 0, nil
}

func number(b []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(b))
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	}
	return 0
}

func truncated(pos int) error {
	return fmt.Errorf("%w: the value at byte %d is cut short", ErrMalformed, pos)
}

// scanJSON bounds depth and size of a JSON body; encoding/json itself allows ten thousand levels.
func scanJSON(b []byte) error {
	if len(b) > MaxBody {
		return fmt.Errorf("%w: %d bytes exceed the limit of %d", ErrMalformed, len(b), MaxBody)
	}
	if JSONDepth(b) > maxJSONDepth {
		return fmt.Errorf("%w: nested deeper than %d", ErrMalformed, maxJSONDepth)
	}
	return nil
}

// JSONDepth is how deep the arrays and objects of a JSON text nest. In what is no JSON it is any
// number.
func JSONDepth(b []byte) int {
	depth, deepest, text := 0, 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}
