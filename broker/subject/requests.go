package subject

import "strings"

// Requests match what somebody asks and waits for, or is told at once, in a namespace and of the
// servers of all. Nothing keeps it: a stream on one of them would answer in place of whoever is
// asked, and hide that nobody listens.
func (ns Namespace) Requests() []string {
	return []string{
		ns.start("api.>"), ns.AllDecide(), ns.start("owner.*"), ns.start("ring.*"),
		ns.start("beat.>"), ns.start("outcome.>"), ns.start("offer.*"), ns.AllControl(),
		servers + ".namespace.*",
	}
}

// Overlap tells whether some subject matches both patterns.
func Overlap(a, b string) bool {
	p, q := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(p), len(q)) {
		switch {
		case p[i] == ">", q[i] == ">":
			return true
		case p[i] != q[i] && p[i] != "*" && q[i] != "*":
			return false
		}
	}
	return len(p) == len(q)
}
