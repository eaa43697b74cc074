package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

// slowAfter is when a wait says what it waits for.
const slowAfter = 2 * time.Second

// runPatience bounds how long an interrupted command looks for the run that it waited for.
const runPatience = time.Second

// errInterrupted is the end of a wait by Ctrl-C.
var errInterrupted = errors.New("interrupted, and the workflow goes on")

// await is outcome for a workflow that goes on without this process: Ctrl-C ends the wait, and says how to go on with it.
func (a *app) await(ctx context.Context, c *drover.Client, run *drover.Run, began time.Time) error {
	waiting, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	err := a.outcome(waiting, c, run, began)
	if _, ended := errors.AsType[*drover.WorkflowError](err); err == nil || ended || !errors.Is(waiting.Err(), context.Canceled) {
		return err
	}
	e := &drover.Error{Op: "result", ID: run.ID, Run: run.RunID, Code: schemas.CodeTimeout, Err: errInterrupted}
	if e.Run == "" {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), runPatience)
		defer cancel()
		if d, err := run.Describe(ctx); err == nil {
			e.Run = d.Execution.Run
		}
	}
	words := []string{"result", e.ID}
	if e.Run != "" {
		words = append(words, "--run", e.Run)
	}
	e.Hint = "wait for it again: " + a.commandLine(words...)
	return e
}

// wait waits for the end of a run. If that takes long, a line on stderr says what the run waits for.
func (a *app) wait(ctx context.Context, c *drover.Client, run *drover.Run) (*drover.Outcome, error) {
	if a.json {
		return run.Wait(ctx) // stderr holds one document at most
	}
	var mu sync.Mutex
	over := false
	slow, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		mu.Lock()
		defer mu.Unlock()
		over = true
	}()
	go func() {
		select {
		case <-time.After(slowAfter):
		case <-slow.Done():
			return
		}
		because, err := whyOrUnserved(slow, c, run.ID, run.RunID)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && !over {
			fmt.Fprintln(a.stderr, "waiting: "+sentence(because))
		}
	}()
	return run.Wait(ctx)
}

// whereFlags are the global flags that say where to connect, without secrets.
var whereFlags = []string{"namespace", "nats", "context", "creds", "nkey", "user", "tlsca", "tlscert", "tlskey"}

// noteWhere keeps where this command connects, for commands that it tells of.
func (a *app) noteWhere(fs *pflag.FlagSet) {
	a.where = nil
	for _, name := range whereFlags {
		if f := fs.Lookup(name); f != nil && f.Changed {
			a.where = append(a.where, "--"+name, f.Value.String())
		}
	}
}

// commandLine is a command to type in a shell, which connects as this one.
func (a *app) commandLine(words ...string) string {
	line := "drover"
	for _, w := range append(words, a.where...) {
		line += " " + shellWord(w)
	}
	return line
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// shellWord quotes a word for a shell.
func shellWord(w string) string {
	if plainWord.MatchString(w) {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
