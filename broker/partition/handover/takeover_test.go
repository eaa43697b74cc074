package handover_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/handover"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// A new owner repeats what is above the checkpoint; all that is open if the history or the server
// has lost something; and nothing after an owner that has left in good order. That is not known of
// one if another was owner since.
func TestWhatANewOwnerFinds(t *testing.T) { // P-1, P-8, P-9, ADR 0016
	virtual.Run(t, func(t *testing.T) {
		handed := &schemas.Handed{Replies: "former."}
		for name, c := range map[string]struct {
			former  func(*rig)
			orderly bool
			met     []string // runs whose effects are repeated
			inbox   uint64   // up to where it is known to be read
			letters int      // that tell of it
		}{
			"nobody before":      {former: func(*rig) {}},
			"left in good order": {orderly: true, inbox: 6, former: func(k *rig) { k.left(handed, nil) }},
			"died": {met: []string{"open r2"}, inbox: 8, former: func(k *rig) {
				k.left(nil, nil)
				k.record("open", "r2", schemas.StatusOpen, 8)
			}},
			"left, and whoever came then died": {inbox: 6, former: func(k *rig) {
				k.left(handed, nil)
				k.fence()
			}},
			"another server": {orderly: true, met: []string{"open r1"}, inbox: 6, former: func(k *rig) {
				k.left(handed, func(c *schemas.Checkpoint) { c.Server = "another" })
			}},
			"another server that loses nothing": {orderly: true, inbox: 6, former: func(k *rig) {
				k.Env.Options.Synced = true
				k.left(handed, func(c *schemas.Checkpoint) { c.Server = "another" })
			}},
			"the last record is gone": {
				orderly: true, met: []string{"open r1"}, letters: 1, inbox: 6, former: func(k *rig) {
					k.left(handed, func(c *schemas.Checkpoint) { c.History += 10 })
				},
			},
			"another record is in its place": {
				orderly: true, met: []string{"open r1"}, letters: 1, inbox: 6, former: func(k *rig) {
					k.left(handed, func(c *schemas.Checkpoint) { c.Witness = "00" })
				},
			},
		} {
			k := newRig(t)
			c.former(k)
			if err := k.TakeOver(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			var met []string
			for wid, runs := range k.Recovered {
				for run := range maps.Keys(runs) {
					met = append(met, wid+" "+run)
				}
			}
			if slices.Sort(met); k.Orderly != c.orderly || !slices.Equal(met, c.met) {
				t.Errorf("%s: in good order: %t, repeats %q; want %t, %q",
					name, k.Orderly, met, c.orderly, c.met)
			}
			opened := k.host.opened
			if len(opened) != 2 || opened[intake.Inbox].Sequence != c.inbox {
				t.Errorf("%s: the logs are opened with %+v, want %d of the inbox",
					name, opened, c.inbox)
			}
			if n := k.letters(); n != c.letters {
				t.Errorf("%s: %d dead letters tell of it, want %d", name, n, c.letters)
			}
			again := c.letters > 0 || c.inbox == 0
			if from := k.Checkpointed.Inbox; from.Sequence == 0 != again {
				t.Errorf("%s: the inbox is read from %+v on; all of it: %t", name, from, again)
			}
		}
	})
}

// left is an owner that has written of two runs, of which one is open, and checkpointed that.
func (k *rig) left(handed *schemas.Handed, change func(*schemas.Checkpoint)) {
	k.t.Helper()
	fence := k.fence()
	k.record("open", "r1", schemas.StatusOpen, 5)
	seq, witness := k.record("closed", "r1", schemas.StatusCompleted, 6)
	c := schemas.Checkpoint{
		Inbox: schemas.Position{Sequence: 6}, Effects: seq, Fence: fence, History: seq,
		Witness: witness, Handed: handed,
	}
	if change != nil {
		change(&c)
	}
	k.checkpoint(c)
}

// letters are how many dead letters there are.
func (k *rig) letters() (n int) {
	k.t.Helper()
	err := k.Env.Conn.Scan(k.t.Context(), k.Env.NS.StreamDead(), natsconn.ReadOptions{},
		func(natsconn.Stored) error {
			n++
			return nil
		})
	if err != nil {
		k.t.Fatal(err)
	}
	return n
}

// Below the fence of a later claim nobody becomes owner, and reads nothing.
func TestLaterClaimHasFenced(t *testing.T) { // P-2, P-16
	virtual.Run(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			later uint64
			owner string
			err   error
		}{
			"a later claim":               {1, "other", env.ErrNewerFence},
			"a later one of our own":      {1, "heir", env.ErrNewerFence},
			"our claim in another's name": {0, "other", env.ErrNewerFence},
			"our own":                     {0, "heir", nil},
		} {
			k := newRig(t)
			claim := k.lease.Number() + c.later
			before, err := handover.Fence(t.Context(), k.Env.Conn, k.Env.NS, 0, claim, c.owner)
			if err != nil {
				t.Fatal(err)
			}
			err = k.TakeOver(t.Context())
			if !errors.Is(err, c.err) || c.err == nil != (len(k.host.opened) > 0) {
				t.Errorf("%s: %v, with %d logs opened; want %v",
					name, err, len(k.host.opened), c.err)
			}
			if c.err == nil && (k.Before != before || k.Fence <= before) {
				t.Errorf("%s: our fence is %d after %d, want after %d", name, k.Fence, k.Before, before)
			}
		}
	})
}

// Two who think that they are owners do not overwrite each other's checkpoint.
func TestCheckpointIsOfOneOwner(t *testing.T) { // P-2
	virtual.Run(t, func(t *testing.T) {
		k := newRig(t)
		rev, err := k.Write(t.Context(), schemas.Checkpoint{Effects: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Write(t.Context(), schemas.Checkpoint{Effects: 2}); err == nil {
			t.Error("who knows of no checkpoint has written over one")
		}
		k.CheckpointRev = rev
		if _, err = k.Write(t.Context(), schemas.Checkpoint{Effects: 3}); err != nil {
			t.Error(err)
		}
		if _, err := k.Write(t.Context(), schemas.Checkpoint{Effects: 4}); err == nil {
			t.Error("who knows an older checkpoint has written over another")
		}
		if err := k.TakeOver(t.Context()); err != nil || k.Checkpointed.Effects != 3 {
			t.Errorf("the next owner finds %+v: %v", k.Checkpointed, err)
		}
	})
}
