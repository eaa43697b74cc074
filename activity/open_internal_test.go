package activity

import (
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/virtual"
)

// A list that is gone as before soon after it was opened for that is made elsewhere, and the worker says so, once for as long as it lasts. What is
// further apart, or said by several consumers at once, are accidents.
func TestListThatIsGoneAsBefore(t *testing.T) {
	type said struct {
		at    time.Duration
		again bool // after a reconnect; else that the list is gone
	}
	gone := func(at ...time.Duration) (all []said) {
		for _, s := range at {
			all = append(all, said{at: s * time.Second})
		}
		return all
	}
	for _, tc := range []struct {
		name string
		said []said
		told int
	}{
		{"once", gone(1), 0},
		{"every ten seconds", gone(1, 11, 21, 31, 41), 1},
		{"several consumers at once", gone(1, 2, 3), 0},
		{"two accidents", gone(1, 51), 0},
		{"for a while, and for another", gone(1, 11, 21, 61, 71), 2},
		{"after a reconnect that has opened it too", []said{{at: time.Second}, {at: 35 * time.Second, again: true}, {at: 45 * time.Second}}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				conn := embeddedtest.Connect(t, embeddedtest.Serve(t, embedded.Options{DontListen: true}))
				log, kept := logtest.NewNullLogger()
				s := &term{Worker: New(conn, &Options{Logger: log})}
				if _, err := conn.Subscribe(s.ns.API("tasklist"), "", func(m natsconn.Msg) {
					if err := m.Respond(nil, []byte("{}")); err != nil {
						t.Error(err)
					}
				}); err != nil {
					t.Fatal(err)
				}
				began, o := time.Now(), newOpening()
				go s.open(t.Context(), "main", o)
				for _, it := range tc.said {
					time.Sleep(time.Until(began.Add(it.at)))
					if it.again {
						once(o.again)
					} else {
						once(o.gone)
					}
				}
				time.Sleep(time.Second)
				told := 0
				for _, e := range kept.AllEntries() {
					if e.Level == logrus.WarnLevel {
						told++
					}
				}
				if told != tc.told {
					t.Errorf("got %d warnings, want %d", told, tc.told)
				}
			})
		})
	}
}
