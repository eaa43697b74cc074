package query

import (
	"slices"
	"strings"

	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/schemas"
)

// choice is a word for one or more of the values that there are of a field.
type choice struct {
	word   string
	values []Value
}

func choiceOf(word string, values ...schemas.Status) choice {
	c := choice{word: word}
	for _, v := range values {
		c.values = append(c.values, Value{Text: string(v)})
	}
	return c
}

// statuses are the words for statuses. In Temporal, Running is what open is here, and all others
// have the same names.
var statuses = []choice{
	choiceOf("open", schemas.StatusOpen),
	choiceOf("paused", schemas.StatusPaused),
	choiceOf("completed", schemas.StatusCompleted),
	choiceOf("failed", schemas.StatusFailed),
	choiceOf("canceled", schemas.StatusCanceled),
	choiceOf("terminated", schemas.StatusTerminated),
	choiceOf("timedOut", schemas.StatusTimedOut),
	choiceOf("continuedAsNew", schemas.StatusContinuedAsNew),
	choiceOf("Running", schemas.StatusOpen),
	choiceOf("closed", schemas.StatusCompleted, schemas.StatusFailed, schemas.StatusCanceled,
		schemas.StatusTerminated, schemas.StatusTimedOut, schemas.StatusContinuedAsNew),
}

// choices are the words for the values of a field; nil if it may have any value.
func (f Field) choices() []choice {
	switch f.Column {
	case ColumnStatus:
		return statuses
	case ColumnStartMode:
		var modes []choice
		for _, m := range schemas.StartModes() {
			modes = append(modes, choice{string(m), []Value{{Text: string(m)}}})
		}
		return modes
	default:
		return nil
	}
}

// choose finds the values of a word. If there are none, want lists the words, and near is the one
// that was probably meant.
func choose(word string, all []choice) (values []Value, want, near string) {
	var words []string
	for _, c := range all {
		if fold(c.word, word) {
			return slices.Clone(c.values), "", ""
		}
		words = append(words, c.word)
	}
	last := len(words) - 1
	want = strings.Join(words[:last], ", ") + " or " + words[last]
	return nil, want, syntax.Nearest(word, words)
}
