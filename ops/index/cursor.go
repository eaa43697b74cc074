package index

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/droverhq/drover/ops/query"
)

// ErrCursor is for a cursor that none of these functions has returned, or not for this order.
var ErrCursor = errors.New("the cursor is not one of a query with this order")

// cursor says after which row a page begins. It stays valid whatever becomes of the row. The order
// that it is for comes first; then come the keys and the ids.
func (o order) cursor(r *rank) string {
	all := appendText(nil, o.name())
	for _, k := range r.keys {
		has := uint64(0)
		if k.has {
			has = 1
		}
		all = binary.AppendVarint(binary.AppendUvarint(all, has), k.number)
		all = appendText(all, k.text)
	}
	all = appendText(appendText(all, r.runText()), r.id)
	return base64.RawURLEncoding.EncodeToString(all)
}

// after reads a cursor, nil if it is empty.
func (o order) after(cursor string) (*rank, error) {
	if cursor == "" {
		return nil, nil
	}
	all, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, ErrCursor
	}
	d := decoder{rest: all}
	name := d.text(len(all))
	var r rank
	for range o {
		r.keys = append(r.keys, key{d.count(1) == 1, d.varint(), d.text(len(all))})
	}
	r.run, r.id = d.text(len(all)), d.text(len(all))
	if d.end() != nil || name != o.name() {
		return nil, ErrCursor
	}
	if pack, ok := packed(r.run); ok {
		r.run, r.pack = "", pack
	}
	return &r, nil
}

// name tells an order from others.
func (o order) name() string { return fmt.Sprint([]query.Order(o)) }
