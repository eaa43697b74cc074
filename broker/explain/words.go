package explain

import (
	"fmt"
	"time"

	"github.com/droverhq/drover/schemas"
)

// lateAlarm is how long an alarm may be late before that is worth a word, as in the audit.
const lateAlarm = 5 * time.Second

// firesAt tells when an alarm is due. If it is late by much, no timer worker has fired it.
func firesAt(now, at schemas.Timestamp) string {
	if late := now.Sub(at); late > lateAlarm {
		return fmt.Sprintf(
			"%s, which is %s ago: no alarm has rung, see: drover audit",
			at,
			round(late),
		)
	}
	return at.String()
}

func reason(r string) string {
	if r == "" {
		return ""
	}
	return " (" + r + ")"
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func more(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("1 more %s is open", one)
	}
	return fmt.Sprintf("%d more %s are open", n, many)
}

func ago(now, then schemas.Timestamp) string {
	return fmt.Sprintf("%s (%s)", then.Time().Format(time.RFC3339), round(now.Sub(then)))
}

func round(d time.Duration) time.Duration { return max(d, 0).Round(time.Millisecond) }
