package index

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"

	"github.com/droverhq/drover/ops/query"
)

// ErrCursor is for a cursor that none of these functions has returned, or not for this order.
var ErrCursor = errors.New("the cursor is not one of a query with this order")

// cursor says after which row a page begins. It stays valid whatever becomes of the row.
type cursor struct {
	Order []query.Order `json:"o"`
	Keys  []key         `json:"k"`
	Run   string        `json:"r"`
	ID    string        `json:"i"`
}

func (o order) cursor(r *rank) string {
	text, err := json.Marshal(cursor{o, r.keys, r.runText(), r.id})
	if err != nil {
		panic(err) // there is nothing in it that cannot be written
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// after reads a cursor, nil if it is empty.
func (o order) after(text string) (*rank, error) {
	if text == "" {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, ErrCursor
	}
	var c cursor
	err = json.Unmarshal(raw, &c)
	if err != nil || !slices.Equal(c.Order, o) || len(c.Keys) != len(o) || c.Run == "" {
		return nil, ErrCursor
	}
	r := &rank{keys: c.Keys, run: c.Run, id: c.ID}
	if pack, ok := packed(c.Run); ok {
		r.run, r.pack = "", pack
	}
	return r, nil
}
