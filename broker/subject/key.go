package subject

import (
	"fmt"
	"strings"
)

// Key makes a key of a bucket from a name, one to one: a byte that a key may not hold, and '=', is written =XX.
func Key(name string) string {
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
