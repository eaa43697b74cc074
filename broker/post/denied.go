package post

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	maxDenials   = 256
	denialLedger = 5 * time.Minute
)

// The server's text is: Permissions Violation for Publish to "subject", and the same with Subscription.
var denialText = regexp.MustCompile(`for (Publish|Subscription) to ("(?:[^"\\]|\\.)*")`)

// denials remembers which subjects the server refused, because the caller learns of it only by silence.
type denials struct {
	mu   sync.Mutex
	pubs map[string]denial
	subs map[string]denial
}

type denial struct {
	at   time.Time
	text string
}

func (d *denials) record(text string) {
	m := denialText.FindStringSubmatch(text)
	if m == nil {
		return
	}
	subject, err := strconv.Unquote(m[2])
	if err != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pubs == nil {
		d.pubs, d.subs = map[string]denial{}, map[string]denial{}
	}
	book := d.pubs
	if m[1] == "Subscription" {
		book = d.subs
	}
	if len(book) >= maxDenials {
		prune(book)
	}
	book[subject] = denial{at: time.Now(), text: strings.TrimPrefix(text, "nats: ")}
}

// prune drops old entries, or all of them when none is old: the ledger serves the next seconds only.
func prune(book map[string]denial) {
	for s, d := range book {
		if time.Since(d.at) > denialLedger {
			delete(book, s)
		}
	}
	if len(book) >= maxDenials {
		clear(book)
	}
}

// since returns the refusal of a publish to subject, or of a subscription to reply, that came at or after start.
// A refused subscription stays refused, so its age does not count.
func (d *denials) since(subject, reply string, start time.Time) (string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v, ok := d.pubs[subject]; ok && !v.at.Before(start) {
		return v.text, true
	}
	if reply != "" {
		for s, v := range d.subs {
			if strings.HasPrefix(reply, strings.TrimRight(s, "*>")) {
				return v.text, true
			}
		}
	}
	return "", false
}

// unanswered is the error of a publish or request that got no answer, with the server's refusal joined to it.
func (c *Conn) unanswered(subject, reply string, start time.Time, cause error) error {
	if cause == nil {
		cause = context.DeadlineExceeded
	}
	if text, ok := c.denied.since(subject, reply, start); ok {
		return fmt.Errorf("%s: %w: %s (%w, %w)", subject, ErrPermission, text, ErrTimeout, cause)
	}
	return fmt.Errorf("%s: %w: %w", subject, ErrTimeout, cause)
}
