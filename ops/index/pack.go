package index

import (
	"encoding/binary"

	"github.com/oklog/ulid/v2"
)

// packed is the ULID that a run id is. It is none unless the same text comes out of it: the letters
// must be large.
func packed(run string) (id [16]byte, ok bool) {
	u, err := ulid.ParseStrict(run)
	if err != nil {
		return id, false
	}
	var text [ulid.EncodedSize]byte
	_ = u.MarshalTextTo(text[:]) // fails on other lengths alone
	if string(text[:]) != run {
		return id, false
	}
	return u, true
}

// packTags is a list of tags as one text, each after its length.
func packTags(tags []string) string {
	var all []byte
	for _, tag := range tags {
		all = binary.AppendUvarint(all, uint64(len(tag)))
		all = append(all, tag...)
	}
	return string(all)
}

// unpackTags is the opposite. Of a text that is no such one it reads as much as it can.
func unpackTags(text string) (tags []string) {
	all := []byte(text)
	for len(all) > 0 {
		n, size := binary.Uvarint(all)
		if size <= 0 || n > uint64(len(all)-size) {
			return tags
		}
		all = all[size:]
		tags = append(tags, string(all[:n]))
		all = all[n:]
	}
	return tags
}
