// Package runid makes ids that somebody asks for again: the same question never gets two, and no
// two questions the same one.
//
// They are ULIDs, as those that are drawn by lot are. What they are made of is fixed: an id that a
// client, or an earlier version, has made is that of a repeat.
package runid

import (
	"crypto/sha256"
	"strconv"

	"github.com/oklog/ulid/v2"
)

// OfRequest is the run id of a start that names none but has a request id. With an empty workflow
// id it is that of the workflow: a start without both has that, too.
func OfRequest(workflowID, requestID string) string {
	return Of(0, strconv.Itoa(len(workflowID))+"."+workflowID+"."+requestID)
}

// Of is a ULID with the given time, in milliseconds since 1970, and 80 bits of the seed's hash;
// without a time, 0 or less, all bits are of the hash.
func Of(ms int64, seed string) string {
	sum := sha256.Sum256([]byte(seed))
	id := ulid.ULID(sum[:16])
	if ms > 0 {
		for i := range 6 {
			id[i] = byte(ms >> (40 - 8*i))
		}
	}
	id[0] &= 0x7f
	return id.String()
}
