package doctor

import (
	"errors"
	"fmt"
	"strings"

	"github.com/droverhq/drover/broker/topology"
)

// judgeConflicts tells once what several streams have in common: one that is wrong, as the signals
// stream is that says another number of partitions, is in conflict with all others.
func judgeConflicts(differences []topology.Difference) []Finding {
	var found []Finding
	type conflict struct{ field, have, want, hint string }
	places, streams := map[conflict]int{}, map[conflict][]string{}
	for _, d := range differences {
		if !d.Conflict {
			continue
		}
		f := Finding{Status: Bad, Check: checkStreams, Found: d.Err.Error()}
		e, ok := errors.AsType[*topology.ConflictError](d.Err)
		if !ok {
			found = append(found, f)
			continue
		}
		c := conflict{e.Field, e.Have, e.Want, e.Hint}
		streams[c] = append(streams[c], e.Stream)
		if n := len(streams[c]); n > 1 {
			found[places[c]].Found = fmt.Sprintf("%d streams: %s is %s, want %s: %s; these are %s",
				n, e.Field, e.Have, e.Want, e.Hint, strings.Join(streams[c], ", "))
			continue
		}
		places[c] = len(found)
		found = append(found, f)
	}
	return found
}
