package actor

import (
	"time"

	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/runs"
)

// Commit is one record on its way.
type Commit struct {
	Group
	First    int64
	Sequence uint64 // predicted
	Hash     []byte
	Sent     time.Time // the zero time if nobody asks
	Bytes    int       // of the record
	Snapshot bool
	Standing runs.Standing // as its headers have it
	Effects  *watermark.Completion
}

// Adopt lets what has no event of its own wait for this commit.
func (c *Commit) Adopt(g Group) {
	c.Group.Effects = Join(c.Group.Effects, g.Effects)
	c.Completions = Join(c.Completions, g.Completions)
	c.Answers = Join(c.Answers, g.Answers)
}

// Join appends what nobody else will use: nearly always one of the two is empty.
func Join[T any](to, more []T) []T {
	if len(to) == 0 {
		return more
	}
	return append(to, more...)
}
