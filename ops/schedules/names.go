package schedules

import (
	"cmp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/bucketkey"
	"github.com/droverhq/drover/internal/runid"
	"github.com/droverhq/drover/schemas"
)

const (
	keyPrefix   = "schedule."
	stateSuffix = ".state"
)

// Key is the key of a schedule in the bucket of schedules.
func Key(id string) string { return keyPrefix + bucketkey.Escape(id) }

func stateKey(id string) string { return Key(id) + stateSuffix }

// idOf is the schedule of a key, or of the key of a state. No id has a dot in its key.
func idOf(key string) (id string, state, ok bool) {
	rest, ok := strings.CutPrefix(key, keyPrefix)
	if !ok {
		return "", false, false
	}
	escaped, state := strings.CutSuffix(rest, stateSuffix)
	id, ok = bucketkey.Unescape(escaped)
	return id, state, ok
}

// RunID is the run id of a slot. It is the same whenever it is computed: two starts of one slot
// begin one run. Manual is the nonce of a slot that somebody has asked for.
func RunID(
	ns subject.Namespace, id, incarnation string, slot schemas.Timestamp, manual string,
) string {
	seed := strings.Join([]string{
		"schedule", string(ns), strconv.Itoa(len(id)), id, incarnation,
		strconv.FormatInt(int64(slot), 10), manual,
	}, "\x00")
	return runid.Of(slot.Time().UnixMilli(), seed)
}

// slotText is a slot as inputs, attributes and workflow ids have it.
func slotText(slot schemas.Timestamp) string {
	if slot == 0 {
		return ""
	}
	return slot.Time().UTC().Format("2006-01-02T15:04:05.999Z07:00")
}

// workflowID is that of a run for which the action names none: <schedule>/<slot>, and after it the
// nonce of a slot that somebody has asked for. The id of a schedule for which there is no room is
// cut, and told from others by a hash.
func workflowID(id string, slot schemas.Timestamp, manual string) string {
	tail := "/" + slotText(slot)
	if manual != "" {
		tail += "/" + manual
	}
	if len(id)+len(tail) <= schemas.MaxIDLen {
		return id + tail
	}
	tail = "~" + runid.Of(0, id)[18:] + tail
	end := schemas.MaxIDLen - len(tail)
	for !utf8.RuneStart(id[end]) {
		end--
	}
	return id[:end] + tail
}

// nonce is what tells a slot that somebody has asked for from others; a repeat of the request has
// the same.
func nonce(requestID string, now time.Time) string {
	id := runid.Of(0, cmp.Or(requestID, strconv.FormatInt(now.UnixNano(), 10)))
	return strings.ToLower(id[16:])
}
