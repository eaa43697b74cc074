package faultproxy

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// maxLine bounds a protocol line. What is longer is no NATS.
const maxLine = 64 << 10

// frame is a protocol line with its payload, or bytes of another protocol as they came.
type frame struct {
	bytes   []byte
	subject string // of a message, else ""
	reply   string // of a message that asks for an answer
	verb    string
	sizes   []string // the numbers at the end of a message's line
	line    int      // bytes of the line with its end
}

// withoutReply is the same message, asking for no answer.
func (f frame) withoutReply() []byte {
	if f.reply == "" {
		return slices.Clone(f.bytes)
	}
	words := append([]string{f.verb, f.subject}, f.sizes...)
	return append([]byte(strings.Join(words, " ")+"\r\n"), f.bytes[f.line:]...)
}

// verbs are those between client and server, with the number of sizes at the end of the line: 0 has
// no payload. MSG and HMSG have a subscription id after the subject.
var verbs = map[string]int{
	"INFO": 0, "CONNECT": 0, "SUB": 0, "UNSUB": 0, "PING": 0, "PONG": 0, "+OK": 0, "-ERR": 0,
	"PUB": 1, "HPUB": 2, "MSG": 1, "HMSG": 2,
}

// framer cuts one direction of a connection into frames. At the first line that it does not know it
// gives up for good: everything passes as it is.
type framer struct {
	rest []byte
	raw  bool
}

// add returns the frames that are whole now. They stay valid.
func (f *framer) add(b []byte) []frame {
	if f.raw {
		return []frame{{bytes: slices.Clone(b)}}
	}
	f.rest = append(f.rest, b...)
	var all []frame
	for len(f.rest) > 0 && !f.raw {
		fr, n := parse(f.rest)
		if n < 0 {
			f.raw = true
			fr, n = frame{bytes: f.rest}, len(f.rest)
		}
		if n == 0 {
			break
		}
		all = append(all, fr)
		f.rest = f.rest[n:]
	}
	f.rest = slices.Clone(f.rest)
	return all
}

// parse returns the first frame of b and its length: 0 if its end is still to come, -1 if this is
// no NATS.
func parse(b []byte) (frame, int) {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		if len(b) > maxLine || !mayBegin(b) {
			return frame{}, -1
		}
		return frame{}, 0
	}
	line := end + 1
	words := strings.Fields(string(b[:end]))
	if len(words) == 0 {
		return frame{bytes: b[:line]}, line
	}
	verb := strings.ToUpper(words[0])
	count, known := verbs[verb]
	if !known {
		return frame{}, -1
	}
	if count == 0 {
		return frame{bytes: b[:line]}, line
	}
	args := words[1:]
	if len(args) < 1+count {
		return frame{}, -1
	}
	size, err := strconv.Atoi(args[len(args)-1])
	if err != nil || size < 0 {
		return frame{}, -1
	}
	whole := line + size + len("\r\n")
	if len(b) < whole {
		return frame{}, 0
	}
	fr := frame{
		bytes: b[:whole], subject: args[0], verb: verb, sizes: args[len(args)-count:], line: line,
	}
	if middle := args[1 : len(args)-count]; len(middle) == 1 && strings.HasSuffix(verb, "PUB") {
		fr.reply = middle[0]
	}
	return fr, whole
}

// mayBegin tells whether a line that has not ended may be one of NATS.
func mayBegin(b []byte) bool {
	word, _, _ := bytes.Cut(b, []byte(" "))
	begun := strings.ToUpper(strings.TrimRight(string(word), "\r"))
	if begun == "" {
		return string(b) == "\r"
	}
	for verb := range verbs {
		if strings.HasPrefix(verb, begun) {
			return true
		}
	}
	return false
}
