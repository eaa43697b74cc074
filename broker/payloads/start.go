package payloads

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// StartPrefix begins the name of every object that was stored for one start, and for nothing else:
// when the start is refused, its objects are removed. Nobody else's can be, whatever a start names.
func StartPrefix(workflowID, run string) string {
	sum := sha256.Sum256([]byte(run + "." + workflowID))
	return "start-" + hex.EncodeToString(sum[:12]) + "-"
}

// OfStart tells whether an object was stored for one start and for nothing else.
func OfStart(object, workflowID, run string) bool {
	return strings.HasPrefix(object, StartPrefix(workflowID, run))
}
