package drovertest

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// Replay runs workflow code with the histories of the files that a pattern matches, and fails the
// test if it does not decide what they say:
//
//	func TestOldRuns(t *testing.T) {
//		drovertest.Replay(t, "testdata/*.jsonl", implement)
//	}
//
// implement is what the program calls with its worker, which has no connection here. A file is what
// "drover history ID --json --payloads" prints. Its run may be open, and wait for a decision; how it
// was closed is compared, too. The order within a decision, inputs and durations are not.
//
// It fails without a file, and for a type that nobody implements.
func Replay(t testing.TB, pattern string, implement ...func(w *drover.Worker)) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("drovertest: no file matches %q (%v)", pattern, err)
	}
	w := new(drover.Client).Worker(nil)
	for _, f := range implement {
		f(w)
	}
	for _, name := range files {
		h, err := readHistory(name)
		if err == nil {
			err = replayFile(t.Context(), h, w.DeciderWorker())
		}
		if err != nil {
			t.Errorf("drovertest: %s: %v", name, err)
		}
	}
}

// readHistory reads a file that has an event in each line.
func readHistory(name string) (h History, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := json.NewDecoder(bufio.NewReader(f))
	for {
		var e schemas.Event
		switch err := d.Decode(&e); {
		case errors.Is(err, io.EOF):
			return h, nil
		case err != nil:
			return nil, fmt.Errorf("after event %d: %w: want a line of JSON for each event, as "+
				"drover history ID --json --payloads prints", len(h), err)
		}
		if _, err := schemas.Whole(e, elsewhere); err != nil {
			return nil, fmt.Errorf("event %d: %w", e.ID, err)
		}
		h = append(h, e)
	}
}

func elsewhere(schemas.Payload) (schemas.Payload, error) {
	return nil, errors.New("the file has only a reference to a large payload: print the history " +
		"with --payloads")
}

func replayFile(ctx context.Context, h History, w *decider.Worker) error {
	started := decider.Started(h)
	if started == nil {
		return errors.New("the history does not begin with WorkflowStarted: it has to be whole")
	}
	d := w.Decider(started.WorkflowType)
	if d == nil {
		return fmt.Errorf("nobody implements the workflow %q, only %q",
			started.WorkflowType, w.Types())
	}
	return replay(ctx, h, defaultReplays, d)
}

// replay compares a history with code, several times: of several deciders one has to agree. The
// error is that of the first.
func replay(ctx context.Context, h History, times int, code ...decider.Decider) error {
	for range times {
		var first error
		agrees := false
		for _, d := range code {
			err := decider.Check(ctx, d, h)
			if agrees = err == nil; agrees {
				break
			}
			first = cmp.Or(first, err)
		}
		if !agrees {
			return first
		}
	}
	return nil
}
