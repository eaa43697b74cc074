package main

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/schemas"
)

// The questions of a workflow of W1, in the order of their first appearance. Each is a message, and most have one for an answer.
const (
	askStart   = "start"   // load to server; answered when the first record is stored
	askLook    = "look"    // server to JetStream: is there a run of this id; not asked about ids that nobody has used
	askDecide  = "decide"  // server to worker: the first decision task; answered with a decision
	askRecord  = "record"  // server to JetStream; answered when it is stored
	askTask    = "task"    // server to the worker that decides: a task, and what the decision behind it needs; not answered
	askOutcome = "outcome" // worker to server, with that decision; answered when the record of both is stored
	askResult  = "result"  // load to server; answered at the end
)

// steps are the records of a workflow: one for its start, and one for each of its three activities.
const steps = 4

// asks are the questions that the conversation LC has for a workflow, where a run of W1 shows them, and what must be there.
var asks = []struct {
	name, subject       string // a filter of NATS
	begins              string // how the body begins, where the subject does not tell
	ahead               bool   // it is marked as a task with what the decision behind it needs
	asked, answered     int    // a workflow
	inGroups, hasNumber bool   // one answer may be for several; the body begins with the number of its workflow in LC
}{
	{name: askStart, subject: namespace.API("start"), asked: 1, answered: 1, hasNumber: true},
	{name: askLook, subject: directGet + "*", begins: lastBySubject}, // audits read histories by it too, in pages
	{name: askDecide, subject: namespace.AllDecide(), asked: 1, answered: 1},
	{name: askRecord, subject: "drover." + string(namespace) + ".history.*.*.*", asked: steps, answered: steps, inGroups: true},
	{name: askTask, subject: namespace.AllDecide(), ahead: true, asked: steps - 1, hasNumber: true},
	{name: askOutcome, subject: "drover." + string(namespace) + ".beat.>", asked: steps - 1, answered: steps - 1},
	{name: askResult, subject: namespace.API("result"), asked: 1, answered: 1, hasNumber: true},
}

const (
	directGet     = "$JS.API.DIRECT.GET."
	lastBySubject = `{"last_by_subj":"`
	// agreement is by how much the messages of a run may differ from the conversation's: a task may be refused, a decision come too late for its
	// outcome.
	agreement = 0.05
	// statusHeader shows how a run stands in each record.
	statusHeader = "Drover-Status"
)

// script is what a run of W1 said: the bodies of all messages by question. LC says them again, each kind in turn.
type script struct {
	Workflows, Partitions int
	Asked, Answered       map[string][][]byte
	Statuses              []string       // of the records, in their headers
	Other                 map[string]int // messages of the namespace that are none of these, by subject
}

// transcribe sorts what a run said. An answer may have been heard before its question.
func transcribe(all []*nats.Msg, workflows, partitions int) *script {
	s := &script{Workflows: workflows, Partitions: partitions, Asked: map[string][][]byte{}, Answered: map[string][][]byte{}, Other: map[string]int{}}
	replies := map[string]string{}
	for _, m := range all {
		if name := questionOf(m); name != "" {
			s.Asked[name] = append(s.Asked[name], m.Data)
			replies[m.Reply] = name
			if name == askRecord {
				s.Statuses = append(s.Statuses, m.Header.Get(statusHeader))
			}
		}
	}
	for _, m := range all {
		name, answer := replies[m.Subject]
		switch {
		case answer:
			s.Answered[name] = append(s.Answered[name], m.Data)
		case questionOf(m) == "" && covers(namespace.All(), m.Subject):
			s.Other[m.Subject]++
		}
	}
	return s
}

func questionOf(m *nats.Msg) string {
	for _, a := range asks {
		if covers(a.subject, m.Subject) && bytes.HasPrefix(m.Data, []byte(a.begins)) && a.ahead == (m.Header.Get(schemas.AheadHeader) != "") {
			return a.name
		}
	}
	return ""
}

// check tells where a run of W1 and the conversation differ: then LC is no limit of it.
func (s *script) check() error {
	var all []error
	differ := func(what string, got, want int) {
		n := float64(s.Workflows)
		if math.Abs(float64(got)-n*float64(want)) > agreement*n*float64(max(want, 1)) {
			all = append(all, fmt.Errorf("a workflow of W1 has %.2f %s, and %d in LC: bring asks and desk to what W1 says", float64(got)/n, what, want))
		}
	}
	for _, a := range asks {
		differ("messages "+a.name, len(s.Asked[a.name]), a.asked)
		if !a.inGroups || len(s.Answered[a.name]) > len(s.Asked[a.name]) {
			differ("answers to "+a.name, len(s.Answered[a.name]), a.answered)
		}
		for _, body := range s.Asked[a.name] {
			if a.hasNumber && len(body) < numberSize {
				all = append(all, fmt.Errorf("a message %s of W1 has %d bytes, and in LC at least %d for the number of its workflow", a.name, len(body), numberSize))
				break
			}
		}
	}
	other := 0
	for _, n := range s.Other {
		other += n
	}
	differ(fmt.Sprintf("other messages (%s)", strings.Join(sortedKeys(s.Other), " ")), other, 0)
	return errors.Join(all...)
}

// sizes is the mean size of each kind of message, without headers, in bytes.
func (s *script) sizes() map[string]float64 {
	all := map[string]float64{}
	for _, of := range []struct {
		what   string
		bodies map[string][][]byte
	}{{"", s.Asked}, {"answer to ", s.Answered}} {
		for name, bodies := range of.bodies {
			total := 0
			for _, b := range bodies {
				total += len(b)
			}
			all[of.what+name] = float64(total) / float64(len(bodies))
		}
	}
	return all
}

// reel gives recorded bodies in turn, to any number of goroutines. They are not to be changed.
type reel struct {
	all  [][]byte
	next atomic.Uint64
}

func (r *reel) turn() []byte {
	_, body := r.place()
	return body
}

// place is turn with the place of the body.
func (r *reel) place() (int, []byte) {
	if len(r.all) == 0 {
		return 0, nil
	}
	i := int((r.next.Add(1) - 1) % uint64(len(r.all)))
	return i, r.all[i]
}

// numberSize is how long the ids of LC's workflows are: as long as those of W1.
const numberSize = 26

// numberOf is the id of a workflow of LC.
func numberOf(i int) string { return fmt.Sprintf("conversation-%013d", i) }

// numbered is a body that begins with the number of a workflow.
func numbered(number string, body []byte) []byte {
	return append(append(make([]byte, 0, len(body)), number...), body[numberSize:]...)
}

// readNumber reads what numbered wrote.
func readNumber(body []byte) (string, error) {
	if len(body) < numberSize {
		return "", fmt.Errorf("a message of %d bytes has no number of a workflow", len(body))
	}
	return string(body[:numberSize]), nil
}

func (s *script) save(path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return gob.NewEncoder(f).Encode(s)
}

func loadScript(path string) (*script, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &script{}
	if err := gob.NewDecoder(f).Decode(s); err != nil {
		return nil, fmt.Errorf("the script %s: %w", path, err)
	}
	if n := len(s.Asked[askRecord]); n == 0 || len(s.Statuses) != n {
		return nil, fmt.Errorf("the script %s has %d records and %d statuses of records: write it anew", path, n, len(s.Statuses))
	}
	return s, nil
}

// marked marks a task with what the decision behind it needs, reported an outcome, and packed a request and its answer.
var (
	marked   = nats.Header{schemas.AheadHeader: {benchList, "noop"}}
	reported = nats.Header{schemas.ReportHeader: {"1"}}
	packed   = nats.Header{schemas.ContentTypeHeader: {schemas.ContentTypeMsgpack}}
)
