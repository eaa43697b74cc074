package schemas

import (
	"bytes"

	"github.com/droverhq/drover/schemas/codec"
)

// MarshalNamed encodes with the names of fields, as everything but records is, and records were.
func MarshalNamed(v any) ([]byte, error) { return vocabulary.AppendNamed(nil, v) }

// Quick decodes by a plan alone, and Library without one; a compact body has only the first.
func Quick(body []byte, v any) bool { return vocabulary.ByPlan(body[1:], v, false) }

// QuickJSON decodes a JSON body by a plan alone.
func QuickJSON(body []byte, v any) bool { return vocabulary.JSONByPlan(body, v, false, false) }

func Library(body []byte, v any) error {
	if err := Scan(body[1:]); err != nil {
		return err
	}
	return codec.ByLibrary(body[1:], v)
}

// MarshalByLibrary encodes without a plan.
func MarshalByLibrary(v any) ([]byte, error) { return codec.AppendByLibrary([]byte{Version}, v) }

// Planned tells whether there is a plan for what v points to.
func Planned(v any) bool { return vocabulary.Planned(v) }

// MarshalCompact encodes a record in the compact form, not packed.
func MarshalCompact(r *Record) ([]byte, error) { return vocabulary.AppendRecord(nil, r) }

// IsPacked tells whether a body is a packed record.
func IsPacked(b []byte) bool { return bytes.HasPrefix(b, []byte{3}) }
