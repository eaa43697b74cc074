package audit

// unseen is what one of the looks of a pass, or both, could not look at: what was found there
// before may still be so.
type unseen struct {
	runs   map[int]bool // partitions whose owner did not answer, or was too far behind to tell
	alarms map[int]bool // partitions whose alarms were not read
	lists  bool
	locks  bool
}

func newUnseen() unseen { return unseen{runs: map[int]bool{}, alarms: map[int]bool{}} }

// looked tells whether a pass would have found this again, were it still so.
func (r *Report) looked(f *Finding) bool {
	u := r.unseen
	switch f.Kind {
	case KindAlarmsOverdue:
		return f.Partition == nil || !u.alarms[*f.Partition]
	case KindTasksWait:
		return !u.lists
	}
	if ofPlaces[f.Kind] {
		return true
	}
	switch f.Kind {
	case KindNoDecider: // counted over all partitions
		return r.Full && len(u.runs) == 0
	case KindTaskMissing, KindTaskStale, KindNobodyGoesOn:
		if u.lists {
			return false
		}
	case KindLockStale, KindLockMissing:
		if u.locks {
			return false
		}
	}
	return r.Full && (f.Partition == nil || !u.runs[*f.Partition])
}
