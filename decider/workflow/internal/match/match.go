package match

import (
	"fmt"
	"strings"

	"github.com/droverhq/drover/schemas"
)

// Ask is something that the code of a workflow asks for.
type Ask struct {
	Decision schemas.Decision
	Line     string // of the code that asks, such as order.go:42; empty if it is not known
}

// key names what is asked for: no two asks of a turn have the same.
type key struct {
	what schemas.DecisionType
	name string
}

func (k key) String() string { return strings.TrimSpace(string(k.what) + " " + k.name) }

// ChangePrefix begins the names of the markers that say which way code has taken.
const ChangePrefix = "change "

// mayGo tells whether the history may have it without the code asking for it.
func (k key) mayGo() bool {
	return k.what == schemas.DecideRecordMarker && strings.HasPrefix(k.name, ChangePrefix)
}

// closing is the kind of all that ends a run; its name says how.
const closing = schemas.DecisionType("close")

// Compare compares the asks of a turn with the events that its decision has caused. The error tells
// both sides; nil if they agree. What a closing decision may not stand beside is to be left out
// before.
func Compare(asks []Ask, block []schemas.Event) error {
	asked := make(map[key]Ask, len(asks))
	for _, a := range asks {
		asked[keyOfDecision(a.Decision)] = a
	}
	found := make(map[key]bool, len(block))
	same := true
	for _, e := range block {
		k, ok := keyOfEvent(e.Attributes)
		if !ok {
			continue
		}
		found[k] = true
		if _, ok := asked[k]; !ok && !k.mayGo() {
			same = false
		}
	}
	for k := range asked {
		same = same && found[k]
	}
	if same {
		return nil
	}
	return &Error{Lines: difference(asks, asked, block, found)}
}

// Error says that code and history differ.
type Error struct {
	// Lines are the events of the history and what the code asks for beside them: "-" before what
	// the code does not ask for, "+" before what the history does not have.
	Lines []string
}

// Error implements error.
func (e *Error) Error() string { return strings.Join(e.Lines, "\n") }

func difference(
	asks []Ask, asked map[key]Ask, block []schemas.Event, found map[key]bool,
) (lines []string) {
	width := 0
	for k := range asked {
		width = max(width, len(k.String()))
	}
	for k := range found {
		width = max(width, len(k.String()))
	}
	for _, e := range block {
		k, ok := keyOfEvent(e.Attributes)
		if !ok {
			continue
		}
		switch a, asks := asked[k]; {
		case asks:
			lines = append(lines, row(" ", e.ID, width, k, a.Line))
		case k.mayGo():
			lines = append(lines, row(" ", e.ID, width, k, "no longer asked for, which may be"))
		default:
			lines = append(lines, row("-", e.ID, width, k, "the code does not ask for it"))
		}
	}
	for _, a := range asks {
		if k := keyOfDecision(a.Decision); !found[k] {
			text := "the code asks for it, the history does not have it here"
			if a.Line != "" {
				text = a.Line + " asks for it, the history does not have it here"
			}
			lines = append(lines, row("+", 0, width, k, text))
		}
	}
	return lines
}

func row(sign string, event int64, width int, k key, text string) string {
	at := ""
	if event != 0 {
		at = fmt.Sprintf("event %d", event)
	}
	return strings.TrimRight(fmt.Sprintf("  %s %-11s %-*s  %s", sign, at, width, k, text), " ")
}
