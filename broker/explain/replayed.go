package explain

import (
	"fmt"

	"github.com/droverhq/drover/schemas"
)

// Replayed adds to why a run has ended what came of it: by is the latest attempt that repeats it;
// nil if there is none.
func Replayed(by *schemas.ReplayAttempt) string {
	if by == nil {
		return ""
	}
	text := fmt.Sprintf("; it was replayed from %s as run %s (%s)",
		by.Replays.From, by.Run, by.Status)
	if by.Replays.Reason != "" {
		text += ": " + by.Replays.Reason
	}
	return text
}
