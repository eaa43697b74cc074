package intake

import "github.com/droverhq/drover/internal/idset"

// mostKnown bounds the memory: some two bytes for each id.
const mostKnown = 1 << 20

// Known is which workflow ids the history may have records of (ADR 0030). It is no proof: a late
// write of a former owner may have come after the listing (P-2).
type Known struct {
	ids    *idset.Set
	listed bool // nothing is missing
}

// Add adds an id.
func (k *Known) Add(wid string) { k.ids.Add(wid) }

// Listed notes that every id of the history has been added.
func (k *Known) Listed() { k.listed = true }

// Unused tells whether the history has no records of an id, as far as is known.
func (k *Known) Unused(wid string) bool { return k.listed && !k.ids.Has(wid) }
