//go:build linux

package damage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/e2e/load"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
)

// wounds are what happens to a file of a stream.
var wounds = map[string]func(t *testing.T, dir string){
	"flipped bit":                  flip,
	"flipped bit in a last record": flipLast,
	"flipped bit in a subject":     flipSubject,
	"truncated block": func(t *testing.T, dir string) {
		name, b := block(t, dir)
		overwrite(t, name, b[:len(b)*2/3])
	},
	"deleted index":              deleteIndex,
	"flipped bit, deleted index": func(t *testing.T, dir string) { flip(t, dir); deleteIndex(t, dir) },
}

// flip damages the message in the middle of the file, of a history one that has others of its run before and after it.
func flip(t *testing.T, dir string) {
	name, b := block(t, dir)
	at := len(b) / 2
	if first := bytes.Index(b, openRun); first >= 0 {
		at = inBody(first + len(openRun) + bytes.Index(b[first+len(openRun):], openRun))
	}
	b[at] ^= 0x10
	overwrite(t, name, b)
}

// flipLast damages the last record of an open run, so that only what the run knows is too little.
func flipLast(t *testing.T, dir string) {
	name, b := block(t, dir)
	b[inBody(lastOfOpenRun(t, b))] ^= 0x10
	overwrite(t, name, b)
}

// flipSubject makes the last record of an open run one of another workflow: NATS finds it under neither name.
func flipSubject(t *testing.T, dir string) {
	name, b := block(t, dir)
	b[lastOfOpenRun(t, b)+bytes.IndexByte(openRun, 'w')] ^= 0x10
	overwrite(t, name, b)
}

// openRun is in the subject of each record of a run that waits for a signal.
var openRun = []byte("history.0.w-1.")

// inBody is a place after the subject that begins with openRun at.
func inBody(at int) int { return at + 60 }

func lastOfOpenRun(t *testing.T, b []byte) int {
	t.Helper()
	at := bytes.LastIndex(b, openRun)
	if at < 0 {
		t.Fatal("there is no record of w-1")
	}
	return at
}

func deleteIndex(t *testing.T, dir string) {
	if err := os.Remove(filepath.Join(dir, "index.db")); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

// block reads the last file of messages.
func block(t *testing.T, dir string) (name string, data []byte) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.blk"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: got %v, %v, want files of messages", dir, names, err)
	}
	name = slices.Max(names)
	b, err := os.ReadFile(name)
	if err != nil || len(b) == 0 {
		t.Fatalf("%s: got %d bytes, %v", name, len(b), err)
	}
	return name, b
}

func overwrite(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A stopped store is damaged, and started again. Whatever it was, no run goes on from something that did not happen: each
// completes as it should, or is refused, and drover verify names every run that has lost a record; and a history that has lost its
// end says so, and may have lost whole runs with it.
func TestDamagedStore(t *testing.T) {
	const history = "drover-default-history-0"
	for _, tt := range []struct {
		profile, stream, wound string
		says                   string // a line of the log
		refused                bool   // a run does not go on
		named                  bool   // verify names a run
	}{
		{"single", history, "flipped bit", "", true, true},
		{"single", history, "flipped bit in a last record", "", true, true},
		// NATS shows nobody the record that is lost so. Its run goes on from the one before; verify counts.
		{"single", history, "flipped bit in a subject", "", false, true},
		{"single", history, "truncated block", "the history has lost its end", false, false},
		{"single", history, "flipped bit, deleted index", "the history has lost its end", false, false},
		{"single", history, "deleted index", "", false, false},
		{"dev", history, "flipped bit", "", true, true},
		{"dev", history, "truncated block", "the history has lost its end", false, false},
		{"single", "drover-default-in-0", "flipped bit", "", false, false},
		{"single", "drover-default-in-0", "truncated block", "a new incarnation begins", false, false},
		{"single", "drover-default-signals", "flipped bit", "", false, false},
		{"single", "drover-default-signals", "truncated block", "", false, false},
		{"single", "drover-default-tasks-load", "flipped bit", "", false, false},
		{"single", "drover-default-tasks-load", "truncated block", "", false, false},
		{"single", "drover-default-alarms-0", "truncated block", "", false, false},
		{"single", "drover-default-alarms-0", "deleted index", "", false, false},
		{"single", "KV_drover-default-claims", "flipped bit", "", false, false},
		{"single", "KV_drover-default-claims", "truncated block", "", false, false},
		{"single", "KV_drover-default-checkpoints", "flipped bit", "", false, false},
		{"single", "KV_drover-default-checkpoints", "truncated block", "", false, false},
	} {
		t.Run(tt.profile+"/"+tt.stream+"/"+tt.wound, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, tt.profile, "")
			runs, loads := m.fill()
			n := m.starts + 1
			wounds[tt.wound](t, filepath.Join(m.store, "jetstream", "$G", "streams", tt.stream, "msgs"))
			m.start("--partitions", "1")
			defer m.workers()()
			refused, unwritable := m.finish(runs, loads)
			if unwritable != nil {
				// The NATS server takes nothing more for a stream in which it meets a bad checksum while it writes. It is said, and
				// without the index it finds out where the good part ends.
				t.Logf("mended after: %v", unwritable)
				m.server.Kill()
				deleteIndex(t, filepath.Join(m.store, "jetstream", "$G", "streams", tt.stream, "msgs"))
				m.start("--partitions", "1")
				if refused, unwritable = m.finish(runs, loads); unwritable != nil {
					t.Fatal(unwritable)
				}
			}
			v := m.verify()
			log := m.logs(n)
			for id, err := range refused {
				if errors.Is(err, drover.ErrNotFound) && strings.Contains(log, "the history has lost its end") {
					delete(refused, id) // all of it was in the end that is lost
				} else if !v.named()[id] {
					t.Errorf("%s is refused and drover verify does not name it: %+v", id, v.Violations)
				}
			}
			if len(refused) > 0 != tt.refused || v.OK == tt.named {
				t.Errorf("got refusals %v and violations %+v, want some: %v and %v", refused, v.Violations, tt.refused, tt.named)
			}
			if !strings.Contains(log, tt.says) {
				t.Errorf("the log does not say %q", tt.says)
			}
			if lost := len(m.read().letters["lost-records"]); (lost > 0) != strings.Contains(log, "the history has lost its end") {
				t.Errorf("got %d dead letters about lost records; the log is\n%s", lost, log)
			}
		})
	}
}

// fill makes a store with runs that have ended and runs that wait for a signal, and stops the server in good order.
func (m *machine) fill() ([]*drover.Run, []load.Input) {
	m.t.Helper()
	m.start("--partitions", "1")
	stop := m.workers()
	ctx, cancel := bounded(m.t)
	defer cancel()
	var runs []*drover.Run
	var loads []load.Input
	for i := range 8 {
		l := load.Input{Steps: 2, Signals: i % 2 * 2, Timer: i % 4 / 3 * 2000}
		run, err := m.begin(ctx, fmt.Sprintf("w-%d", i), l, i%4 < 2)
		if err != nil {
			m.t.Fatal(err)
		}
		if l.Signals > 0 {
			err = run.Signal(ctx, load.Poke, "one")
		} else {
			_, err = run.Wait(ctx)
		}
		if err != nil {
			m.t.Fatal(err)
		}
		runs, loads = append(runs, run), append(loads, l)
	}
	poll.Until(m.t, patience, "every signal is in a history", func() bool {
		a := m.read()
		return !slices.ContainsFunc(runs, func(r *drover.Run) bool {
			return loads[slices.Index(runs, r)].Signals > 0 && a.signals[r.ID][`"one"`] == 0
		})
	})
	stop()
	m.server.Stop(patience)
	return runs, loads
}

// begin starts a run through the API, or through the inbox as the owner of a parent does.
func (m *machine) begin(ctx context.Context, id string, l load.Input, inbox bool) (*drover.Run, error) {
	if !inbox {
		return m.client.Start(ctx, load.Type, l, &drover.StartOptions{ID: id})
	}
	run := ulid.Make().String()
	input, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	body, err := schemas.Marshal(&schemas.StartRequest{V: schemas.Version, WorkflowID: id, Run: run, RequestID: run, Type: load.Type, Input: input})
	if err != nil {
		return nil, err
	}
	to := subject.Namespace("default").In(0, id, "start")
	if _, err = natsconn.Of(m.client).PublishSync(ctx, to, natsconn.Addressed(to), body); err != nil {
		return nil, err
	}
	poll.Until(m.t, patience, id+" has begun", func() bool {
		_, err := m.client.Run(id, run).Describe(ctx)
		return err == nil
	})
	return m.client.Run(id, run), nil
}

// finish brings every run to its end, and returns those that are refused as damaged. It stops when the server says that it
// cannot write.
func (m *machine) finish(runs []*drover.Run, loads []load.Input) (refused map[string]error, unwritable error) {
	m.t.Helper()
	ctx, cancel := bounded(m.t)
	defer cancel()
	refused = map[string]error{}
	for i, run := range runs {
		if loads[i].Signals > 0 {
			for range 2 { // the first signal may be lost with its log
				err := run.Signal(ctx, load.Poke, "two")
				switch {
				case cannotWrite(err):
					return nil, err
				case err != nil && !errors.Is(err, drover.ErrClosed) && !damaged(err):
					m.t.Fatalf("signal %s: %v", run.ID, err)
				}
			}
		}
		o, err := run.Wait(ctx)
		switch {
		case cannotWrite(err):
			return nil, err
		case damaged(err):
			refused[run.ID] = err
		case err != nil:
			m.t.Fatalf("result of %s: %v", run.ID, err)
		case o.Status != schemas.StatusCompleted || string(o.Result) != loads[i].Want() || o.Run != run.RunID:
			m.t.Fatalf("%s: got %+v, want run %s completed with %s", run.ID, o, run.RunID, loads[i].Want())
		}
	}
	return refused, nil
}

func cannotWrite(err error) bool {
	return errors.Is(err, drover.ErrUnavailable) && strings.Contains(err.Error(), "the store cannot be written")
}

func damaged(err error) bool {
	// A workflow whose last record cannot be read is not known to the server.
	return errors.Is(err, drover.ErrNotFound) || errors.Is(err, drover.ErrInternal) && strings.Contains(err.Error(), "the history is damaged")
}
