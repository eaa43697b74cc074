package e2e

import (
	"slices"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
)

// dead returns the dead letters of a reason, the oldest first.
func (w *world) dead(reason string) []schemas.DeadEntry {
	w.t.Helper()
	ctx, cancel := w.bounded()
	defer cancel()
	var all []schemas.DeadEntry
	for e, err := range w.client.DeadLetters(ctx, deadOf(reason)) {
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// letter waits for the dead letter of a reason that is about a subject.
func (w *world) letter(reason, subj string) schemas.DeadEntry {
	w.t.Helper()
	var found schemas.DeadEntry
	poll.Until(w.t, patience, "a dead letter "+reason+" about "+subj, func() bool {
		all := w.dead(reason)
		i := slices.IndexFunc(all, func(e schemas.DeadEntry) bool { return e.Subject == subj })
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	return found
}

func deadOf(reason string) drover.DeadOptions { return drover.DeadOptions{Reason: reason} }
