package kinds

import (
	"encoding/binary"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// decoder makes UTF-8 of a text; false if it is none in that charset.
type decoder func([]byte) ([]byte, bool)

// decoders are the charsets that need no table.
var decoders = map[string]decoder{
	"utf-8": plainUTF8, "us-ascii": plainUTF8, "iso-8859-1": latin1,
	"utf-16": wide(nil), "utf-16le": wide(binary.LittleEndian), "utf-16be": wide(binary.BigEndian),
}

var charsetNames = map[string]string{
	"utf8": "utf-8", "ascii": "us-ascii", "latin1": "iso-8859-1", "latin-1": "iso-8859-1",
}

func charsets() []string { return slices.Sorted(maps.Keys(decoders)) }

// decoderOf finds a charset by its name; nil for none.
func decoderOf(name string) (decoder, bool) {
	if name == "" {
		return nil, true
	}
	name = strings.ToLower(strings.TrimSpace(name))
	if other, ok := charsetNames[name]; ok {
		name = other
	}
	d, ok := decoders[name]
	return d, ok
}

// saidCharset is that of the content type; nil if it says none that is known.
func saidCharset(h http.Header) decoder {
	_, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return nil
	}
	d, _ := decoderOf(params["charset"])
	return d
}

// decodeText decodes a body, if there is a charset and the body has it.
func decodeText(d decoder, body []byte) ([]byte, bool) {
	if d == nil {
		return nil, false
	}
	return d(body)
}

func plainUTF8(b []byte) ([]byte, bool) { return b, utf8.Valid(b) }

func latin1(b []byte) ([]byte, bool) {
	out := make([]byte, 0, len(b)+len(b)/8)
	for _, c := range b {
		out = utf8.AppendRune(out, rune(c))
	}
	return out, true
}

// wide reads UTF-16; without an order it goes by the mark at the beginning, else big endian.
func wide(order binary.ByteOrder) decoder {
	return func(b []byte) ([]byte, bool) {
		if len(b)%2 != 0 {
			return nil, false
		}
		order := order
		if order == nil {
			order = binary.BigEndian
			if len(b) >= 2 && b[0] == 0xff && b[1] == 0xfe {
				order = binary.LittleEndian
			}
		}
		units := make([]uint16, 0, len(b)/2)
		for i := 0; i < len(b); i += 2 {
			units = append(units, order.Uint16(b[i:]))
		}
		if len(units) > 0 && units[0] == 0xfeff {
			units = units[1:]
		}
		return []byte(string(utf16.Decode(units))), true
	}
}
