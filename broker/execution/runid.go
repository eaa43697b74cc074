package execution

import (
	"crypto/sha256"
	"strconv"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/schemas"
)

// runID mints the id of a run that another run asks for: a child's, or that of a continuation. The core has no dice, so
// what they would give comes from who asks: the same question never gets two ids, and no two questions the same one.
func runID(parent string, event int64, at schemas.Timestamp) string {
	return ulidOf(at, parent+"."+strconv.FormatInt(event, 10)+"."+strconv.FormatInt(int64(at), 10))
}

// RunIDOf mints the run id of a start that names none but has a request id: a repeat asks for the same run.
func RunIDOf(workflowID, requestID string) string {
	return ulidOf(0, strconv.Itoa(len(workflowID))+"."+workflowID+"."+requestID)
}

// ulidOf is a ULID with the given time and 80 bits of hash; without a time all bits are hash.
func ulidOf(at schemas.Timestamp, seed string) string {
	sum := sha256.Sum256([]byte(seed))
	id := ulid.ULID(sum[:16])
	if ms := uint64(max(at, 0)) / 1e6; ms != 0 {
		for i := range 6 {
			id[i] = byte(ms >> (40 - 8*i))
		}
	}
	id[0] &= 0x7f
	return id.String()
}
