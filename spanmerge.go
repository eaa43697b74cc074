package drover

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/droverhq/drover/schemas/ops"
)

// spanMerge makes a timeline of pages of spans.
type spanMerge struct {
	Timeline
	at   map[int64]int  // spans by their events
	open map[string]int // the last lock of each name, and the last pause
}

// add takes a page. What began before it is known.
func (m *spanMerge) add(page *ops.Spans) error {
	n := len(page.Kind)
	for _, other := range []int{
		len(page.Name), len(page.Queued), len(page.Start), len(page.End), len(page.Outcome),
		len(page.Event), len(page.Of),
	} {
		if other != n {
			return fmt.Errorf("a page has %d kinds and %d of another array: want as many", n, other)
		}
	}
	for i := range n {
		m.addSpan(page, i)
	}
	return nil
}

func (m *spanMerge) addSpan(page *ops.Spans, i int) {
	kind, event := page.Kind[i], page.Event[i]
	named := string(kind) + page.Name[i]
	at, known := m.at[event]
	if event == 0 {
		if at, known = m.open[named]; !known || m.End[at] >= 0 {
			return // the run had it from the one before
		}
	}
	if !known {
		at = m.Add(kind, page.Name[i], event, page.Of[i])
		m.at[event] = at
	}
	if of, ok := m.at[page.Of[i]]; ok && page.Of[i] != 0 {
		m.Name[at] = m.Name[of]
	}
	if kind == ops.SpanLock || kind == ops.SpanPause {
		m.open[string(kind)+m.Name[at]] = at
	}
	if m.Queued[at] < 0 {
		m.Queued[at] = page.Queued[i]
	}
	if m.Start[at] < 0 { // an activity began with its first attempt
		m.Start[at] = page.Start[i]
	}
	if page.End[i] >= 0 {
		m.End[at], m.Outcome[at] = page.End[i], page.Outcome[i]
	}
}

// begin is the first time of a span.
func (m *spanMerge) begin(i int) int64 {
	if m.Queued[i] >= 0 {
		return m.Queued[i]
	}
	return m.Start[i]
}

// layOut gives each span the first lane that is free when it begins.
func (m *spanMerge) layOut() {
	m.Lane = make([]int, len(m.Kind))
	order := make([]int, len(m.Kind))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(m.begin(a), m.begin(b)) })
	free := []int64{0} // from when each lane is free
	for _, i := range order {
		if m.Kind[i] == ops.SpanDecision || m.Kind[i] == ops.SpanAttempt {
			continue
		}
		lane, begin := 1, m.begin(i)
		for lane < len(free) && free[lane] > begin {
			lane++
		}
		if lane == len(free) {
			free = append(free, 0)
		}
		if free[lane] = m.End[i]; m.End[i] < 0 {
			free[lane] = math.MaxInt64
		}
		m.Lane[i] = lane
	}
	for i, of := range m.Of {
		if at, ok := m.at[of]; ok && of != 0 {
			m.Lane[i] = m.Lane[at]
		}
	}
}
