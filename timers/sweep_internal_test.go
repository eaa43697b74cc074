package timers

import (
	"errors"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// After a reconnect a sequence may be another alarm's: only the very one that rang is deleted.
func TestTombstoneIsTheVeryMessage(t *testing.T) { // P-9
	stored := func(subject string, due int64) natsconn.Stored {
		body, err := schemas.Marshal(&schemas.Alarm{V: schemas.Version, Run: "r", Due: schemas.Timestamp(due)})
		if err != nil {
			t.Fatal(err)
		}
		return natsconn.Stored{Subject: subject, Seq: 1, Data: body, Time: time.Unix(1, 0)}
	}
	m := stored("a", 5)
	fired := tombstone{seq: 1, subject: "a", due: 5}
	letter := tombstone{seq: 1, letter: &natsconn.Stored{Subject: "a", Seq: 1, Data: []byte("damaged"), Time: time.Unix(1, 0)}}
	for _, tt := range []struct {
		name string
		sc   tombstone
		m    natsconn.Stored
		want bool
	}{
		{"the same", fired, m, true},
		{"for another time", fired, stored("a", 6), false},
		{"of another run", fired, stored("b", 5), false},
		{"it cannot be read", fired, *letter.letter, false},
		{"the letter", letter, *letter.letter, true},
		{"of another run than the letter", letter, stored("b", 5), false},
		{"later than the letter", letter, natsconn.Stored{Subject: "a", Seq: 1, Time: time.Unix(2, 0)}, false},
	} {
		if got := tt.sc.is(&tt.m); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// What was found before a reconnect is neither purged nor deleted without a look, and neither is what becomes a dead letter first.
func TestWhatIsLookedAtBeforeItGoes(t *testing.T) { // P-9
	s := newTerm(New(nil, nil), 0, nil)
	s.discard(tombstone{seq: 1})
	s.reconnected()
	s.discard(tombstone{seq: 2, letter: &natsconn.Stored{Seq: 2}})
	batch := append([]tombstone{{seq: 3, epoch: neverSeen}}, s.tombstones...)
	if rest, waiting := s.purge(t.Context(), batch, time.Hour); len(rest) != 3 || len(waiting) != 0 {
		t.Errorf("got %d that are left and %d that wait for a purge, want all left", len(rest), len(waiting))
	}
	if slow := s.eraseAll(t.Context(), batch); len(slow) != 3 {
		t.Errorf("%d are looked at, want 3", len(slow))
	}
}

// While alarms ring, or have just rung, little is deleted: nothing of a few that are new, a share of more, and what is above that no worker that
// dies may leave.
func TestShareOfTombstones(t *testing.T) {
	for _, tc := range []struct {
		name      string
		n         int
		old       bool
		flying    int
		fired     time.Time
		finishing bool
		now       int
	}{
		{name: "nothing rings", n: 5000, now: 5000},
		{name: "a few", n: fewTombstones, flying: 1, now: 0},
		{name: "a few that have just rung", n: fewTombstones, fired: time.Now(), now: 0},
		{name: "a few that are old", n: 7, flying: 1, old: true, now: 7},
		{name: "many that are old", n: fewTombstones, flying: 1, old: true, now: sweepShare},
		{name: "more", n: fewTombstones + 1, flying: 1, now: sweepShare},
		{name: "many", n: mostTombstones, flying: 1, now: sweepShare},
		{name: "too many", n: mostTombstones + 50, flying: 1, now: sweepShare + 50},
		{name: "too many that are old", n: mostTombstones + 50, flying: 1, old: true, now: sweepShare + 50},
		{name: "the end", n: 5000, flying: 1, fired: time.Now(), finishing: true, now: 5000},
	} {
		s := newTerm(New(nil, nil), 0, nil)
		s.flying, s.lastFired, s.finishing = tc.flying, tc.fired, tc.finishing
		if now, later := s.share(make([]tombstone, tc.n), tc.old); len(now) != tc.now || len(later) != tc.n-tc.now {
			t.Errorf("%s: got %d to delete now and %d later, want %d now of %d", tc.name, len(now), len(later), tc.now, tc.n)
		}
	}
}

// A deletion that failed is tried again, with a look, for as long as the term lasts; one that is done releases the alarm's pin.
func TestDeletionThatFails(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		s := newTerm(New(nil, nil), 0, nil)
		s.discard(tombstone{seq: 2, letter: &natsconn.Stored{Seq: 2}})
		sc := s.tombstones[0]
		s.tombstones = nil
		s.removed(t.Context(), sc, errors.New("no answer"))
		time.Sleep(sweepAgain + time.Millisecond)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.tombstones) != 1 || s.tombstones[0].seq != 2 || s.tombstones[0].epoch != neverSeen {
			t.Fatalf("got %+v, want it again, to be looked at", s.tombstones)
		}
		if got := s.alarmIndex.lowest(); got != 2 {
			t.Errorf("a purge may go up to %d, want 2: no letter is written yet", got)
		}
		s.mu.Unlock()
		s.removed(t.Context(), s.tombstones[0], natsconn.ErrNotFound)
		s.mu.Lock()
		if got := s.alarmIndex.lowest(); got == 2 {
			t.Error("what is deleted keeps everything after it from being purged")
		}
	})
}

// An alarm that cannot be read stays until its dead letter is written.
func TestAlarmStaysUntilItsLetterIsWritten(t *testing.T) {
	defer embedded.RegisterTicker()() // outside of all bubbles
	virtual.Run(t, func(t *testing.T) {
		conn := embeddedtest.Dial(t)
		n, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, Partitions: 1})
		if err != nil {
			t.Fatal(err)
		}
		seq, err := conn.PublishSync(t.Context(), n.Name.Alarm(0, "o", "r"), nil, []byte("damaged"))
		if err != nil {
			t.Fatal(err)
		}
		m, err := conn.GetSeq(t.Context(), n.Name.StreamAlarms(0), seq)
		if err != nil {
			t.Fatal(err)
		}
		s := newTerm(New(conn, &Options{Partitions: 1}), 0, nil)
		sc := tombstone{seq: seq, subject: m.Subject, letter: m, cause: errors.New("damaged")}
		if err := conn.JetStream().DeleteStream(t.Context(), n.Name.StreamDead()); err != nil {
			t.Fatal(err)
		}
		s.remove(t.Context(), sc)
		if _, err := conn.GetSeq(t.Context(), n.Name.StreamAlarms(0), seq); err != nil {
			t.Errorf("got %v, want that it stays while there is no place for its letter", err)
		}
		if _, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, Partitions: 1}); err != nil {
			t.Fatal(err)
		}
		s.remove(t.Context(), sc)
		if _, err := conn.GetSeq(t.Context(), n.Name.StreamAlarms(0), seq); !errors.Is(err, natsconn.ErrNotFound) {
			t.Errorf("got %v, want it gone", err)
		}
		if last, err := conn.StreamLastSeq(t.Context(), n.Name.StreamDead()); err != nil || last != 1 {
			t.Errorf("got %d dead letters, %v, want one", last, err)
		}
	})
}
