package runs

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/droverhq/drover/schemas"
)

// maxReason is how many bytes of a reason lists show.
const maxReason = 120

// Reason is why a run has failed, by the event that has closed it: one line of at most 120 bytes
// that ends with a whole rune. It is empty for other ends, and for nil.
func Reason(end *schemas.Event) string {
	if end == nil {
		return ""
	}
	failed, ok := end.Attributes.(*schemas.WorkflowFailed)
	if !ok {
		return ""
	}
	return oneLine.Replace(cut(failed.Reason, maxReason))
}

var oneLine = strings.NewReplacer("\n", " ", "\r", " ")

// cut is what fits n bytes of a text, in whole runes.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// ReasonAt is [Reason] of a run by where its last record stands, from any replica. If another
// message stands there, or none, it is an error.
func (r *Reader) ReasonAt(
	ctx context.Context, partition int, wid, run string, last uint64,
) (string, error) {
	subj := r.Namespace.History(partition, wid, run)
	s, err := r.messageAt(ctx, partition, subj, last)
	if err != nil {
		return "", err
	}
	if !IsRecord(s) {
		return "", fmt.Errorf("%w: message %d of %s is no record", ErrDamaged, last, subj)
	}
	record, err := recordIn(s)
	if err != nil || len(record.Events) == 0 {
		return "", err
	}
	return Reason(&record.Events[len(record.Events)-1]), nil
}
