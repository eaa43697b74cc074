package runs

import "github.com/droverhq/drover/schemas"

// MostOwned is the longest body, in bytes, that what is decoded of it may point into, if some of
// that may stay for as long as its run is in memory: an activity that is open for days must not
// keep the context of the decision that scheduled it, which may be a thousand times its size.
const MostOwned = 4 << 10

// Decode decodes a body that nobody else has and that is remembered, in part, as long as a run.
func Decode(body []byte, v any) error {
	if len(body) > MostOwned {
		return schemas.Unmarshal(body, v)
	}
	return schemas.UnmarshalOwned(body, v)
}
