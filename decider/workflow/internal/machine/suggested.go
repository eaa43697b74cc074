package machine

import (
	"github.com/droverhq/drover/decider/workflow/internal/match"
	"github.com/droverhq/drover/schemas"
)

// suggestion is the marker of the first decision whose task said that the run is to continue as
// new. A task says so for reasons that its events do not have, such as the length of the history,
// so the machine writes it down, whether code looks or not: then code may look anywhere.
const suggestion = "continue as new suggested"

// seeSuggestion looks at the beginning of a turn whether it is the one.
func (m *Machine) seeSuggestion() {
	if m.suggested {
		return
	}
	if m.Live() {
		m.suggested = m.steps.live.Suggested
	} else {
		_, m.suggested = m.recorded(suggestion)
	}
	if m.suggested {
		marker := schemas.Decide(&schemas.RecordMarker{MarkerName: suggestion})
		m.asks = append(m.asks, match.Ask{Decision: marker})
	}
}

// Suggested tells whether the run is to continue as new when that fits. Once true it stays so.
func (m *Machine) Suggested() bool { return m.suggested }
