package retention

import (
	"bytes"
	"encoding/binary"
)

// tail is how many bytes at the end of a name are compared first. Shorter names are not looked for.
const tail = 8

// finder looks for names in bytes, whatever these are: a name counts wherever it stands, so a
// reference that somebody has put inside a value of their own counts as much as one that is the
// whole payload. It looks at each byte once, however many names there are.
type finder struct {
	missing map[string]bool // what was not found yet
	tails   map[uint64][]string
	pairs   [1 << 10]uint64 // which two bytes a name may end with
}

func newFinder(names []string) *finder {
	f := &finder{
		missing: make(map[string]bool, len(names)), tails: make(map[uint64][]string, len(names)),
	}
	for _, n := range names {
		if len(n) < tail || f.missing[n] {
			continue
		}
		f.missing[n] = true
		end := n[len(n)-tail:]
		key := binary.BigEndian.Uint64([]byte(end))
		f.tails[key] = append(f.tails[key], n)
		f.pairs[uint16(key)>>6] |= 1 << (key & 63)
	}
	return f
}

// search notes which names stand in b.
func (f *finder) search(b []byte) {
	f.plain(b)
	if bytes.Contains(b, []byte(`\u00`)) {
		f.plain(unescape(b))
	}
}

func (f *finder) plain(b []byte) {
	for end := tail; end <= len(b); end++ {
		pair := uint16(b[end-2])<<8 | uint16(b[end-1])
		if f.pairs[pair>>6]&(1<<(pair&63)) == 0 {
			continue
		}
		for _, n := range f.tails[binary.BigEndian.Uint64(b[end-tail:end])] {
			if bytes.HasSuffix(b[:end], []byte(n)) {
				delete(f.missing, n)
			}
		}
	}
}

// unescape replaces the letters and digits that JSON allows to be written by number.
func unescape(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if c, ok := escaped(b[i:]); ok {
			out = append(out, c)
			i += len(`\u0041`) - 1
			continue
		}
		out = append(out, b[i])
	}
	return out
}

func escaped(b []byte) (c byte, ok bool) {
	if len(b) < len(`\u0041`) || !bytes.HasPrefix(b, []byte(`\u00`)) {
		return 0, false
	}
	for _, d := range b[4:6] {
		switch {
		case d >= '0' && d <= '9':
			c = c<<4 | (d - '0')
		case d|0x20 >= 'a' && d|0x20 <= 'f':
			c = c<<4 | (d | 0x20 - 'a' + 10)
		default:
			return 0, false
		}
	}
	return c, true
}
