package audit

// Standing is a kind of finding, and how bad it is.
type Standing struct {
	Kind     Kind
	Severity Severity
}

// Standing counts what the last passes of [Auditor.Run] have found and what is still so, as far as
// it is told apart: at most Options.MostOfKind of a kind. It is for Options.Observer.
func (a *Auditor) Standing() map[Standing]int {
	all := map[Standing]int{}
	for _, f := range a.known {
		if !f.Repaired {
			all[Standing{f.Kind, f.Severity}]++
		}
	}
	return all
}
