package namespaces

import (
	"context"
	"regexp"
	"strings"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

// partOf says which workflow an inner part of a flow belongs to, and to which of its steps.
type partOf struct {
	WorkflowID string `json:"workflowId"`
	Run        string `json:"run"`
	// with the round, and the number of the item: 0#1/0; of a part of a part both
	Step string `json:"step"`
}

// partID is how flows name their inner parts: the run that asked, and what it asked for.
var partID = regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{26}:(.+)$`)

// mostNested bounds how far a part is followed to its workflow.
const mostNested = 50

// partNames looks up the workflows of inner parts, each once.
type partNames struct {
	c     *drover.Client
	known map[string]*partOf // nil for what is none
}

// lockLine is a line of "drover lock list".
type lockLine struct {
	schemas.LockRecord
	// Parts are the inner parts of flows among the holders and those that wait, by their ids.
	Parts map[string]*partOf `json:"parts,omitempty"`
}

// of tells of the parts that hold a lock, and of those among the first that wait for it.
func (n *partNames) of(ctx context.Context, r *schemas.LockRecord) map[string]*partOf {
	var parts map[string]*partOf
	for _, places := range [][]schemas.LockPlace{r.Holders, r.Waiters} {
		for i := range places[:min(len(places), mostWaiting)] {
			id := places[i].WorkflowID
			p := n.lookUp(ctx, id, places[i].Run)
			if p == nil {
				continue
			}
			if parts == nil {
				parts = map[string]*partOf{}
			}
			parts[id] = p
		}
	}
	return parts
}

// lookUp follows a part to the workflow that somebody has started. It returns nil for what is no
// part, or cannot be asked now.
func (n *partNames) lookUp(ctx context.Context, id, run string) *partOf {
	found := partID.FindStringSubmatch(id)
	if found == nil {
		return nil
	}
	if p, ok := n.known[id]; ok {
		return p
	}
	p := &partOf{WorkflowID: id, Run: run}
	for range mostNested {
		found = partID.FindStringSubmatch(p.WorkflowID)
		if found == nil {
			break
		}
		d, err := n.c.Run(p.WorkflowID, p.Run).Describe(ctx)
		if err != nil || d.Execution.Parent == nil {
			p = nil
			break
		}
		p = &partOf{
			WorkflowID: d.Execution.Parent.WorkflowID, Run: d.Execution.Parent.Run,
			Step: strings.TrimSuffix(found[1]+":"+p.Step, ":"),
		}
	}
	n.known[id] = p
	return p
}
