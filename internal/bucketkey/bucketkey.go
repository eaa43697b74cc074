// Package bucketkey makes keys of NATS buckets from names of any kind. Types, nodes and shares of
// claims are kept under such keys; docs/reference/streams.md tells it to other languages, so it
// never changes.
package bucketkey

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// Escape makes a key from a name, one to one: every byte outside A-Z a-z 0-9 _ - is written =XX.
func Escape(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}

// Unescape finds the name of a key; false if Escape never makes such a key.
func Unescape(key string) (string, bool) {
	var name []byte
	for at := 0; at < len(key); at++ {
		c := key[at]
		if c == '=' && at+3 <= len(key) {
			b, err := hex.DecodeString(key[at+1 : at+3])
			if err != nil {
				return "", false
			}
			c, at = b[0], at+2
		}
		name = append(name, c)
	}
	return string(name), Escape(string(name)) == key
}
