// Package rootcause finds the error that a failure of a flow goes back to.
package rootcause

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
)

// failure is what a flow that failed says in the details of its end.
type failure struct {
	Message string   `json:"message"`
	Type    string   `json:"type"`
	Step    string   `json:"step"`
	Cause   *failure `json:"cause"`
}

// maxMessage is how much of a message is told, in characters.
const maxMessage = 300

// Of tells in a line the innermost cause in the details of a run that failed. It is empty where
// they name no cause, as those of other workflows, whatever these say.
func Of(details []byte) string {
	var f failure
	if len(details) == 0 || details[0] != '{' || json.Unmarshal(details, &f) != nil ||
		f.Message == "" || f.Cause == nil {
		return ""
	}
	c := f.Cause
	for c.Cause != nil {
		c = c.Cause
	}
	if c.Message == "" {
		return ""
	}
	s := clean(c.Message)
	if c.Type != "" && c.Type != c.Message {
		s = clean(c.Type) + ": " + s
	}
	if c.Step != "" {
		s += " (at step " + clean(c.Step) + ")"
	}
	return s
}

func clean(s string) string {
	if r := []rune(s); len(r) > maxMessage {
		s = string(r[:maxMessage]) + "…"
	}
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
