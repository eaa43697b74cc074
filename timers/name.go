package timers

import (
	"bytes"
	"strings"

	"github.com/droverhq/drover/internal/shortid"
)

// nameOf is the name that the book has for an alarm, of what its subject ends in: the workflow's
// token, a dot, and the run.
func nameOf(end string) string {
	wid, run, _ := strings.Cut(end, ".") // it was judged before, so there is one
	var room [128]byte
	return string(shortid.Append(append(append(room[:0], wid...), '.'), run))
}

// nameText is what the subject of an alarm ends in.
func nameText(name []byte) string {
	wid, run, _ := bytes.Cut(name, []byte("."))
	return string(wid) + "." + shortid.Text(run)
}
