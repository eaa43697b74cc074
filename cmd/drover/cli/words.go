package cli

import (
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// restartWords are the restart policies.
func restartWords() []string {
	return []string{string(ops.RestartAlways), string(ops.RestartOnFailure)}
}

// statuses are the words of --status.
var statuses = []schemas.Status{
	schemas.StatusOpen, schemas.StatusPaused, schemas.StatusCompleted, schemas.StatusFailed,
	schemas.StatusCanceled, schemas.StatusTerminated, schemas.StatusTimedOut,
	schemas.StatusContinuedAsNew, schemas.StatusClosed,
}

func statusWords() []string {
	words := make([]string, len(statuses))
	for i, s := range statuses {
		words[i] = string(s)
	}
	return words
}

// OverlapWords are the overlap policies.
var OverlapWords = []string{
	string(ops.OverlapSkip), string(ops.OverlapBufferOne), string(ops.OverlapBufferAll),
	string(ops.OverlapCancelOther), string(ops.OverlapTerminateOther), string(ops.OverlapAllow),
}
