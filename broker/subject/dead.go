package subject

import "strings"

// AllDeadOf is every dead letter, of any reason, whose tail begins with rest: drover.<ns>.dead.*.<rest>.>.
func (ns Namespace) AllDeadOf(rest ...string) string {
	return ns.start("dead.*.") + strings.Join(rest, ".") + ".>"
}

// LastToken decodes the last token of a subject.
func LastToken(subject string) (string, error) {
	return ParseToken(subject[strings.LastIndexByte(subject, '.')+1:])
}
