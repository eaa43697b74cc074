package partition

import "github.com/droverhq/drover/broker/partition/watermark"

// commit is one record on its way.
type commit struct {
	group
	first    int64
	sequence uint64 // predicted
	hash     []byte
	snapshot bool
	effects  *watermark.Completion
}

// adopt lets what has no event of its own wait for this commit.
func (c *commit) adopt(g group) {
	c.group.effects = join(c.group.effects, g.effects)
	c.completions = join(c.completions, g.completions)
	c.answers = join(c.answers, g.answers)
}

// join appends what nobody else will use: nearly always one of the two is empty.
func join[T any](to, more []T) []T {
	if len(to) == 0 {
		return more
	}
	return append(to, more...)
}
