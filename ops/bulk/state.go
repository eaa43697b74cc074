package bulk

import (
	"slices"
	"strings"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const (
	// perPage is how many runs stand in one payload.
	perPage = 1000
	// perActivity is how many runs one activity acts on at most.
	perActivity = 500
	// lasts is about how many seconds one lasts: so soon a new rate holds, and a job ends that is
	// canceled.
	lasts = 5
	// mostRefusals is how many are told one by one, and longestMessage how many bytes each has.
	mostRefusals   = 10
	longestMessage = 240
)

// acts is the input of an activity: the runs of the job from From on, Count of them.
type acts struct {
	From  int `json:"from"`
	Count int `json:"count"`
	Rate  int `json:"rate"`
}

// frozen is the result of the first activity. The pages are named for the janitor: what nothing
// names is removed.
type frozen struct {
	Runs  int                  `json:"runs"`
	Pages []schemas.PayloadRef `json:"pages,omitempty"`
}

// outcome is what became of one run, or of many.
type outcome struct {
	Done     int               `json:"done,omitempty"`
	Nothing  int               `json:"nothing,omitempty"`
	Refused  int               `json:"refused,omitempty"`
	Codes    []ops.BulkCode    `json:"codes,omitempty"`
	Refusals []ops.BulkRefusal `json:"refusals,omitempty"`
}

// add takes what became of others.
func (o *outcome) add(p outcome) {
	o.Done, o.Nothing, o.Refused = o.Done+p.Done, o.Nothing+p.Nothing, o.Refused+p.Refused
	for _, c := range p.Codes {
		at := slices.IndexFunc(o.Codes, func(k ops.BulkCode) bool { return k.Code == c.Code })
		if at < 0 {
			at, o.Codes = len(o.Codes), append(o.Codes, ops.BulkCode{Code: c.Code})
		}
		o.Codes[at].Count += c.Count
	}
	room := mostRefusals - len(o.Refusals)
	o.Refusals = append(o.Refusals, p.Refusals[:min(room, len(p.Refusals))]...)
}

// refused is the outcome of a run that was refused.
func refused(t target, e *schemas.Error) outcome {
	return outcome{
		Refused: 1, Codes: []ops.BulkCode{{Code: e.Code, Count: 1}},
		Refusals: []ops.BulkRefusal{{
			WorkflowID: t.ID, Run: t.Run, Code: e.Code, Message: clip(e.Error(), longestMessage),
		}},
	}
}

// clip cuts a text to n bytes of valid UTF-8.
func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n-len("…")] + "…"
	}
	return strings.ToValidUTF8(s, "")
}

// target is a run that is acted on. First is the first run of its chain, empty in that run itself.
type target struct {
	ID    string `json:"id"`
	Run   string `json:"run"`
	First string `json:"first,omitempty"`
}

// chain names the chain of a run.
func (t target) chain() string {
	if t.First != "" {
		return t.First
	}
	return t.Run
}

// take adds an outcome to the state of a job.
func take(s *ops.BulkState, p outcome) {
	all := outcome{
		Done: s.Done, Nothing: s.Nothing, Refused: s.Refused, Codes: s.Codes, Refusals: s.Refusals,
	}
	all.add(p)
	s.Done, s.Nothing, s.Refused = all.Done, all.Nothing, all.Refused
	s.Codes, s.Refusals = all.Codes, all.Refusals
	s.Left = s.Runs - s.Done - s.Nothing - s.Refused
}

// next is what the next activity acts on; Count is 0 if nothing is left. It stays within a page.
func next(s *ops.BulkState) acts {
	from := s.Runs - s.Left
	page := (from/perPage + 1) * perPage
	return acts{
		From: from, Rate: s.Rate,
		Count: min(perActivity, max(1, s.Rate*lasts), page-from, s.Left),
	}
}
