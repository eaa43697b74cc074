package subject

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxIDBytes is the longest id, in bytes of UTF-8 before encoding.
const MaxIDBytes = 256

// MaxNameBytes is the longest namespace or list name, in bytes.
const MaxNameBytes = 64

// ErrInvalidID is wrapped by every refusal of an id or a name.
var ErrInvalidID = errors.New("invalid id")

const (
	idForm   = "1 to 256 bytes of UTF-8 without control characters"
	nameForm = "1 to 64 bytes of letters, digits, '-' and '_'"
	upperHex = "0123456789ABCDEF"
)

// plain says which bytes stand for themselves in a token.
var plain = func() (t [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-=~@:") {
		t[c] = true
	}
	return t
}()

// Token writes an id as one subject token: bytes outside A-Z a-z 0-9 _ - = ~ @ : become %XX in
// upper-case hex. It takes any string and never fails; an id without such bytes is returned as it
// is, without allocation.
func Token(id string) string {
	escapes := 0
	for i := range len(id) {
		if !plain[id[i]] {
			escapes++
		}
	}
	if escapes == 0 {
		return id
	}
	b := make([]byte, 0, len(id)+2*escapes)
	for i := range len(id) {
		if c := id[i]; plain[c] {
			b = append(b, c)
		} else {
			b = append(b, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return string(b)
}

// ParseToken gives back the id that [Token] wrote. It accepts only the canonical form of a valid
// id: a plain byte that is escaped, lower-case hex, or an id that [ValidateID] refuses, is an error
// that wraps [ErrInvalidID].
func ParseToken(tok string) (string, error) {
	id := tok
	if strings.IndexByte(tok, '%') >= 0 {
		b := make([]byte, 0, len(tok))
		for i := 0; i < len(tok); i++ {
			if tok[i] != '%' {
				b = append(b, tok[i])
				continue
			}
			c, ok := unescape(tok[i:])
			if !ok {
				return "", fmt.Errorf(
					"%w: subject token %q: bad escape at byte %d, want %%XX in upper-case hex for a byte that needs it",
					ErrInvalidID, tok, i)
			}
			b = append(b, c)
			i += 2
		}
		id = string(b)
	}
	for i := range len(tok) {
		if c := tok[i]; c != '%' && !plain[c] {
			return "", fmt.Errorf("%w: subject token %q: byte 0x%02x at %d must be written %%XX",
				ErrInvalidID, tok, c, i)
		}
	}
	if err := ValidateID("subject token", id); err != nil {
		return "", err
	}
	return id, nil
}

// unescape reads one %XX; it refuses lower-case hex and bytes that need no escape.
func unescape(s string) (byte, bool) {
	if len(s) < 3 {
		return 0, false
	}
	hi, lo := strings.IndexByte(upperHex, s[1]), strings.IndexByte(upperHex, s[2])
	if hi < 0 || lo < 0 {
		return 0, false
	}
	c := byte(hi<<4 | lo)
	return c, !plain[c]
}

// ValidateID checks an id that a caller chose: 1 to 256 bytes of UTF-8 without control characters.
// The error names the field and wraps [ErrInvalidID].
func ValidateID(field, id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%w: %s is empty: want %s", ErrInvalidID, field, idForm)
	case len(id) > MaxIDBytes:
		return fmt.Errorf("%w: %s has %d bytes: want %s", ErrInvalidID, field, len(id), idForm)
	}
	for i, r := range id {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(id[i:]); size == 1 {
				return fmt.Errorf("%w: %s %q has byte 0x%02x at %d, which is not UTF-8: want %s",
					ErrInvalidID, field, id, id[i], i, idForm)
			}
		}
		if unicode.IsControl(r) {
			return fmt.Errorf("%w: %s %q has control character %U at byte %d: want %s",
				ErrInvalidID, field, id, r, i, idForm)
		}
	}
	return nil
}

// ValidateName checks the name of a list or a namespace: 1 to 64 bytes of letters, digits, - and _.
// The error names the field and wraps [ErrInvalidID].
func ValidateName(field, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: %s is empty: want %s", ErrInvalidID, field, nameForm)
	case len(name) > MaxNameBytes:
		return fmt.Errorf("%w: %s has %d bytes: want %s", ErrInvalidID, field, len(name), nameForm)
	}
	for i := range len(name) {
		if !nameByte(name[i]) {
			return fmt.Errorf("%w: %s %q has byte 0x%02x at %d: want %s",
				ErrInvalidID, field, name, name[i], i, nameForm)
		}
	}
	return nil
}

// ValidateNamespace checks the name of a namespace: a name as in [ValidateName] that does not hold
// "-tasks-". Stream names join namespace and list with '-'. Without this rule the task stream of
// list "x-dead" in namespace "a" and the dead letters of a namespace "a-tasks-x" would be one
// stream.
func ValidateNamespace(name string) error {
	if err := ValidateName("namespace", name); err != nil {
		return err
	}
	if strings.Contains(name, tasksInfix) {
		return fmt.Errorf(
			"%w: namespace %q holds %q, which separates namespace and list in stream names: choose a name without it",
			ErrInvalidID, name, tasksInfix)
	}
	return nil
}

func nameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' ||
		c == '_'
}
