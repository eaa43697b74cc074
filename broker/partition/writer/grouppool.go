package writer

import "github.com/droverhq/drover/broker/partition/actor"

// maxPooledLists is how many lists a partition keeps, and maxPooledLength how long they may be:
// nearly every record has one to four groups, and its list is needed for microseconds.
const (
	maxPooledLists  = 64
	maxPooledLength = 8
)

// groupPool keeps the memory of lists of groups from one run to the next. A run that keeps its own
// would hold it while it sleeps.
type groupPool [][]actor.Group

func (s *groupPool) take() []actor.Group {
	n := len(*s)
	if n == 0 {
		return make([]actor.Group, 0, 4)
	}
	last := (*s)[n-1]
	*s = (*s)[:n-1]
	return last
}

// give takes back a list that nobody uses any more.
func (s *groupPool) give(list []actor.Group) {
	if len(*s) == maxPooledLists || cap(list) > maxPooledLength || cap(list) < 2 {
		return
	}
	clear(list)
	*s = append(*s, list[:0])
}
