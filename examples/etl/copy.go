package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// watermark is all that the copy knows: its input, its context, and the input of the run that continues it.
type watermark struct {
	In  string `json:"in"`
	Out string `json:"out"`
	// Every is how often it looks for new lines at the end of the file.
	Every schemas.Duration `json:"every"`
	// Read and Written are how many bytes of both files are done, Items how many lines that is.
	Read    int64 `json:"read"`
	Written int64 `json:"written"`
	Items   int   `json:"items"`
}

// copying is the watermark and what is open.
type copying struct {
	watermark
	Busy    bool `json:"busy,omitempty"`    // an item is being done
	Waiting bool `json:"waiting,omitempty"` // a timer runs
	Again   bool `json:"again,omitempty"`   // there may be more to do
	N       int  `json:"n"`                 // of activities and timers: each has a name of its own
}

// decideCopy does one item after the other. At the end of the file it waits for the timer, or for any signal.
func decideCopy(_ context.Context, t *decider.Task) ([]schemas.Decision, error) {
	var c copying
	if err := t.Context().Decode(&c); err != nil {
		return nil, err
	}
	for _, e := range t.Events() {
		switch a := e.Attributes.(type) {
		case *schemas.WorkflowStarted:
			if err := a.Input.Decode(&c.watermark); err != nil {
				return []schemas.Decision{decider.Fail("the input is no watermark: "+err.Error(), nil)}, nil
			}
			c.Again = true
		case *schemas.ActivitySuccess:
			before := c.Read
			if err := a.Result.Decode(&c.watermark); err != nil {
				return nil, err
			}
			c.Busy, c.Again = false, c.Again || c.Read > before
		case *schemas.ActivityFailed, *schemas.ActivityTimedOut, *schemas.ActivityScheduleFailed:
			c.Busy = false // and it is tried again when the timer fires
		case *schemas.TimerExpired:
			c.Waiting, c.Again = false, true
		case *schemas.Signal:
			c.Again = true
		case *schemas.WorkflowCancelRequested:
			return []schemas.Decision{decider.Cancel(nil)}, nil
		}
	}
	var all []schemas.Decision
	switch {
	case c.Busy:
	case t.SuggestContinueAsNew():
		return []schemas.Decision{decider.ContinueAsNew(c.watermark)}, nil
	case c.Again:
		c.N++
		all = append(all, decider.Schedule(fmt.Sprint("item-", c.N), "etl-item", c.watermark, decider.List(taskList)))
		c.Busy, c.Again = true, false
	case !c.Waiting:
		c.N++
		all = append(all, decider.Timer(fmt.Sprint("look-", c.N), time.Duration(c.Every)))
		c.Waiting = true
	}
	left, err := schemas.JSONPayload(&c)
	if err != nil {
		return nil, err
	}
	t.SetContext(left)
	return all, nil
}

// copyItem does the line after the watermark, and returns the watermark after it; the same one at the end of the file. It writes at the
// watermark too, so that doing it twice is doing it once.
func copyItem(_ context.Context, w watermark) (after watermark, err error) {
	in, err := os.Open(w.In)
	if err != nil {
		return w, err
	}
	defer in.Close()
	if _, err := in.Seek(w.Read, io.SeekStart); err != nil {
		return w, err
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	if errors.Is(err, io.EOF) { // nothing, or a line that is still being written
		return w, nil
	}
	if err != nil {
		return w, err
	}
	out, err := os.OpenFile(w.Out, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	n, err := out.WriteAt([]byte(fmt.Sprintf("%d: %s", w.Items+1, strings.ToUpper(line))), w.Written)
	if err == nil {
		err = out.Sync()
	}
	if err != nil {
		return w, err
	}
	after = w
	after.Read, after.Written, after.Items = w.Read+int64(len(line)), w.Written+int64(n), w.Items+1
	return after, afterItem(after)
}

// afterItem is called when a line is written and nobody knows it yet. For tests.
var afterItem = func(watermark) error { return nil }
