package schemas

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// ErrInvalidName is what errors about ids and names wrap.
var ErrInvalidName = errors.New("invalid name")

// Limits of ids and names, in bytes.
const (
	MaxIDLen   = 256
	MaxNameLen = 64
	// MaxTags is how many tags a run may have.
	MaxTags = 5
)

// ValidateID checks an id: 1 to 256 bytes of UTF-8 text without control characters. The error names
// the field.
func ValidateID(field, id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%s: %w: it is empty; want 1 to %d bytes of text",
			field, ErrInvalidName, MaxIDLen)
	case len(id) > MaxIDLen:
		return fmt.Errorf("%s: %w: %d bytes; want 1 to %d",
			field, ErrInvalidName, len(id), MaxIDLen)
	case !utf8.ValidString(id):
		return fmt.Errorf("%s: %w: it is not UTF-8", field, ErrInvalidName)
	}
	for i, r := range id {
		if r < 0x20 || r >= 0x7f && r <= 0x9f {
			return fmt.Errorf("%s: %w: control character %U at byte %d",
				field, ErrInvalidName, r, i)
		}
	}
	return nil
}

// ValidateName checks the name of a namespace or a task list: 1 to 64 letters, digits, "-" and "_".
func ValidateName(field, name string) error {
	if name == "" || len(name) > MaxNameLen {
		return fmt.Errorf("%s: %w: %d bytes; want 1 to %d letters, digits, \"-\" or \"_\"",
			field, ErrInvalidName, len(name), MaxNameLen)
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return fmt.Errorf("%s %q: %w: %q at byte %d; want letters, digits, \"-\" or \"_\"",
				field, name, ErrInvalidName, c, i)
		}
	}
	return nil
}
