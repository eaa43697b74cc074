package subject

import "strings"

// servers is the first token of what servers of all namespaces tell each other, and are asked about
// namespaces.
const servers = Root + "-server"

// Reserved tells whether a subject is one of Drover or of the NATS server: what is published there
// has a meaning, so nobody publishes there because somebody else says so.
func Reserved(subject string) bool {
	first, _, _ := strings.Cut(subject, ".")
	return first == Root || first == servers || strings.HasPrefix(subject, "$")
}

// Answerable tells whether a request may be answered on the reply subject that it names. NATS lets
// everybody name any.
func Answerable(reply string) bool { return reply != "" && !Reserved(reply) }

// StreamOfDrover tells whether a stream, that of a bucket or of an object store included, is one of
// Drover.
func StreamOfDrover(stream string) bool {
	for _, store := range []string{"KV_", "OBJ_"} {
		if rest, ok := strings.CutPrefix(stream, store); ok {
			stream = rest
			break
		}
	}
	return strings.HasPrefix(stream, Root+"-")
}
