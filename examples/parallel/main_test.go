package main

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/drovertest"
)

// The example against a real server: each task is scheduled once, and TaskC when one of the others is done.
func TestParallel(t *testing.T) {
	url := drovertest.Start(t, nil).URL()
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"-nats", url, "-id", "order-17"}, &out, &errs); code != 0 {
		t.Fatalf("got exit code %d, want 0; stderr: %s", code, &errs)
	}
	text := out.String()
	if !strings.HasPrefix(text, "workflow order-17 run ") || !strings.HasSuffix(text, "\nresult: all three are done\n") {
		t.Fatalf("got %q, want the ids, the timeline and the result", text)
	}
	inOrder(t, text, "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted",
		"ActivityScheduled TaskA", "ActivityScheduled TaskB", "ActivityScheduled TaskC", "ActivityStarted TaskC",
		"ActivitySuccess TaskC", "DeciderCompleted", "WorkflowSuccess")
	// Which of the two is done first is the machine's choice; TaskC waits for one of them.
	before, _, _ := strings.Cut(text, "  ActivityScheduled TaskC\n")
	if !strings.Contains(before, "ActivitySuccess") {
		t.Errorf("TaskC is scheduled before another task is done; all of it:\n%s", text)
	}
	for _, once := range []string{"ActivityScheduled TaskA", "ActivityScheduled TaskB", "ActivityScheduled TaskC", "WorkflowSuccess"} {
		if n := strings.Count(text, once+"\n"); n != 1 {
			t.Errorf("got %q %d times, want once; all of it:\n%s", once, n, text)
		}
	}
	for i, line := range regexp.MustCompile(`(?m)^ *(\d+)  \+\d+\.\d{3}s  \w+( Task[ABC])?$`).FindAllStringSubmatch(text, -1) {
		if want := i + 1; line[1] != strconv.Itoa(want) {
			t.Fatalf("got event %s, want %d; all of it:\n%s", line[1], want, text)
		}
	}
}

// A run that waits already is joined: whoever started it before there was a decider gets it done by the id alone.
func TestParallelJoins(t *testing.T) {
	url := drovertest.Start(t, nil).URL()
	client, err := drover.Connect(t.Context(), &drover.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	waits, err := client.Start(t.Context(), "parallel", "order 17", &drover.StartOptions{ID: "order-17"})
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"-nats", url, "-id", "order-17"}, &out, &errs); code != 0 {
		t.Fatalf("got exit code %d, want 0; stderr: %s", code, &errs)
	}
	if text := out.String(); !strings.HasPrefix(text, "workflow order-17 run "+waits.RunID+"\n") || !strings.HasSuffix(text, "\nresult: all three are done\n") {
		t.Errorf("got %q, want the run %s and its result", text, waits.RunID)
	}
}

// inOrder checks that the lines of text end with these words in this order, with others in between.
func inOrder(t *testing.T, text string, words ...string) {
	t.Helper()
	rest := text
	for _, w := range words {
		_, after, found := strings.Cut(rest, "  "+w+"\n")
		if !found {
			t.Fatalf("got no %q after the ones before it, want the order %q; all of it:\n%s", w, words, text)
		}
		rest = after
	}
}

func TestUsage(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"help", []string{"-h"}, 0, "-nats"},
		{"unknown flag", []string{"-x"}, 2, "-x"},
		{"argument", []string{"x"}, 2, `argument "x" is too much`},
		{"nobody there", []string{"-nats", "nats://127.0.0.1:1"}, 1, "127.0.0.1:1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := run(t.Context(), tc.args, &out, &errs); code != tc.code {
				t.Errorf("got exit code %d, want %d", code, tc.code)
			}
			if !strings.Contains(errs.String(), tc.says) {
				t.Errorf("got %q, want it to say %q", errs.String(), tc.says)
			}
		})
	}
}
