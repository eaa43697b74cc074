package execution

import (
	"crypto/sha256"
	"strconv"

	"github.com/droverhq/drover/schemas"
)

// crockford is the alphabet of ULIDs.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// runID mints the id of a run that another run asks for: a child's, or that of a continuation. The core has no dice, so
// what they would give comes from who asks: the same question never gets two ids, and no two questions the same one.
func runID(parent string, event int64, at schemas.Timestamp) string {
	return ulidOf(at, parent+"."+strconv.FormatInt(event, 10)+"."+strconv.FormatInt(int64(at), 10))
}

// RunIDOf mints the run id of a start that names none but has a request id: a repeat asks for the same run.
func RunIDOf(workflowID, requestID string) string {
	return ulidOf(0, strconv.Itoa(len(workflowID))+"."+workflowID+"."+requestID)
}

// ulidOf writes 48 bits of milliseconds and 80 bits of hash as a ULID; without a time all bits are hash.
func ulidOf(at schemas.Timestamp, seed string) string {
	sum := sha256.Sum256([]byte(seed))
	b := sum[:16]
	if ms := uint64(max(at, 0)) / 1e6; ms != 0 {
		for i := range 6 {
			b[i] = byte(ms >> (40 - 8*i))
		}
	}
	b[0] &= 0x7f // 26 characters hold 130 bits: the first one is at most 7
	out := make([]byte, 26)
	var acc uint64
	bits := 2 // two zero bits in front make 130
	for i, n := 0, 0; n < 26; {
		for bits < 5 && i < 16 {
			acc, bits, i = acc<<8|uint64(b[i]), bits+8, i+1
		}
		out[n] = crockford[acc>>(bits-5)&31]
		bits -= 5
		n++
	}
	return string(out)
}
