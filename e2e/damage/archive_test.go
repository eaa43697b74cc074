//go:build linux

package damage

import (
	"errors"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// archive is what the histories and the dead letters hold.
type archive struct {
	runs    map[string]bool                // by run id
	closes  map[string]int                 // closing events, by run id
	begun   map[string]time.Time           // when a run began, by run id
	closed  map[string]time.Time           // and when it ended
	signals map[string]map[string]int      // bodies in histories, by workflow id and body
	dead    map[string]int                 // by body
	letters map[string][]schemas.DeadEntry // by reason
}

// read reads what is stored now.
func (m *machine) read() *archive {
	m.t.Helper()
	ctx, cancel := bounded(m.t)
	defer cancel()
	a := &archive{
		runs: map[string]bool{}, closes: map[string]int{}, signals: map[string]map[string]int{}, dead: map[string]int{},
		letters: map[string][]schemas.DeadEntry{}, begun: map[string]time.Time{}, closed: map[string]time.Time{},
	}
	for partition := 0; ; partition++ {
		err := natsconn.Of(m.client).Scan(ctx, namespace.StreamHistory(partition), natsconn.ReadOptions{FilterSubjects: []string{namespace.AllRuns(partition)}}, func(s natsconn.Stored) error {
			return a.record(s)
		})
		if errors.Is(err, natsconn.ErrNoStream) && partition > 0 {
			break
		}
		if err != nil {
			m.t.Fatalf("partition %d: %v", partition, err)
		}
	}
	for e, err := range m.client.DeadLetters(ctx, drover.DeadOptions{}) {
		if err != nil {
			m.t.Fatal(err)
		}
		a.dead[string(e.Body)]++
		a.letters[e.Reason] = append(a.letters[e.Reason], e)
	}
	return a
}

func (a *archive) record(s natsconn.Stored) error {
	_, id, run, err := subject.ParseHistory(s.Subject)
	if err != nil {
		return err
	}
	var r schemas.Record
	if err := schemas.Unmarshal(s.Data, &r); err != nil {
		return err
	}
	a.runs[run] = true
	for _, e := range r.Events {
		if e.ID == 1 {
			a.begun[run] = e.Time.Time()
		}
		if s, ok := e.Attributes.(*schemas.Signal); ok {
			if a.signals[id] == nil {
				a.signals[id] = map[string]int{}
			}
			a.signals[id][string(s.Input)]++
		}
		if e.Type().Closes() {
			a.closes[run]++
			a.closed[run] = e.Time.Time()
		}
	}
	return nil
}
