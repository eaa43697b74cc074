package topology_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/topology"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
)

// TestConflicts puts something in the way of a namespace and expects an error that names the stream, what differs and
// the way out, and that what was there is not changed.
func TestConflicts(t *testing.T) {
	edit := func(stream string, fn func(*jetstream.StreamConfig)) func(*testing.T, jetstream.JetStream) {
		return func(t *testing.T, js jetstream.JetStream) {
			s, err := js.Stream(t.Context(), stream)
			if err != nil {
				t.Fatal(err)
			}
			cfg := s.CachedInfo().Config
			fn(&cfg)
			if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
		}
	}
	replace := func(stream string, fn func(*jetstream.StreamConfig)) func(*testing.T, jetstream.JetStream) {
		return func(t *testing.T, js jetstream.JetStream) {
			s, err := js.Stream(t.Context(), stream)
			if err != nil {
				t.Fatal(err)
			}
			cfg := s.CachedInfo().Config
			fn(&cfg)
			if err := js.DeleteStream(t.Context(), stream); err != nil {
				t.Fatal(err)
			}
			if _, err := js.CreateStream(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
		}
	}
	const in, history, signals, alarms = "drover-default-in-1", "drover-default-history-0", "drover-default-signals", "drover-default-alarms-0"
	for _, tc := range []struct {
		name                      string
		inTheWay                  func(*testing.T, jetstream.JetStream)
		o                         topology.Options
		stream, field, have, hint string
	}{
		{
			"other subjects", edit(in, func(c *jetstream.StreamConfig) { c.Subjects = []string{"orders.>"} }),
			topology.Options{Memory: true},
			in, "subjects", "[orders.>]", "change that back",
		},
		{
			"another program's subjects", edit(in, func(c *jetstream.StreamConfig) { c.Subjects, c.Metadata = []string{"orders.>"}, nil }),
			topology.Options{Memory: true},
			in, "subjects", "[orders.>]", "choose another namespace",
		},
		{
			"other retention", replace(history, func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy }),
			topology.Options{Memory: true},
			history, "retention", "WorkQueue", "restore it from a backup",
		},
		{"other storage", nil, topology.Options{Memory: false}, signals, "storage", "Memory", "delete the namespace"},
		{"more partitions", nil, topology.Options{Partitions: 8, Memory: true}, signals, "the number of partitions", "2", "set it to 2"},
		{"fewer partitions", nil, topology.Options{Partitions: 1, Memory: true}, signals, "the number of partitions", "2", "set it to 2"},
		{
			"another transform", edit(signals, func(c *jetstream.StreamConfig) {
				c.SubjectTransform.Destination = "drover.default.sig.0.{{wildcard(1)}}.{{wildcard(2)}}"
			}),
			topology.Options{Memory: true},
			signals, "the subject transform", "drover.default.signal.*.* to drover.default.sig.0.", "change that back",
		},
		{
			"no metadata", edit(signals, func(c *jetstream.StreamConfig) { c.Metadata = nil }),
			topology.Options{Memory: true},
			signals, "metadata drover.namespace", "missing", "restore it",
		},
		{
			"bad metadata", edit(signals, func(c *jetstream.StreamConfig) { c.Metadata["drover.partitions"] = "-4" }),
			topology.Options{Memory: true},
			signals, "metadata drover.partitions", `"-4"`, "restore it",
		},
		{
			"a partition of another size", edit(in, func(c *jetstream.StreamConfig) { c.Metadata["drover.partitions"] = "4" }),
			topology.Options{Memory: true},
			in, "metadata drover.partitions", "4", "if the other streams of the namespace say 4 too, delete drover-default-signals alone",
		},
		{
			"a newer schema", edit(history, func(c *jetstream.StreamConfig) { c.Metadata["drover.schema"] = "2" }),
			topology.Options{Memory: true},
			history, "metadata drover.schema", `"2"`, "newer Drover",
		},
		{
			"a newer format", edit(signals, func(c *jetstream.StreamConfig) { c.Metadata["drover.format"] = "3" }),
			topology.Options{Memory: true},
			signals, "metadata drover.format", `"3"`, "newer Drover",
		},
		{
			"version 0.1", edit(signals, func(c *jetstream.StreamConfig) {
				delete(c.Metadata, "drover.format")
				delete(c.Metadata, "drover.compression")
			}),
			topology.Options{Memory: true},
			signals, "metadata drover.format", `"1"`, "Drover 0.1 wrote here",
		},
		{
			"message TTLs on an inbox", edit(in, func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }),
			topology.Options{Memory: true},
			in, "allow_msg_ttl", "on", "cannot be taken back",
		},
		{
			"schedules on an inbox", replace(in, func(c *jetstream.StreamConfig) {
				c.Discard, c.AllowMsgSchedules, c.AllowRollup = jetstream.DiscardOld, true, true
			}),
			topology.Options{Memory: true},
			in, "allow_msg_schedules", "on", "cannot be taken back",
		},
		{"purge denied", edit(history, func(c *jetstream.StreamConfig) { c.DenyPurge = true }), topology.Options{Memory: true}, history, "deny_purge", "on", "cannot be taken back"},
		{"deletes denied", edit(alarms, func(c *jetstream.StreamConfig) { c.DenyDelete = true }), topology.Options{Memory: true}, alarms, "deny_delete", "on", "cannot be taken back"},
		{"sealed", edit(history, func(c *jetstream.StreamConfig) { c.Sealed = true }), topology.Options{Memory: true}, history, "sealed", "on", "cannot be taken back"},
		{
			"a source", edit(history, func(c *jetstream.StreamConfig) { c.Sources = []*jetstream.StreamSource{{Name: signals}} }),
			topology.Options{Memory: true},
			history, "a mirror or source", "on", "who deletes it loses",
		},
		{"a foreign stream on our subjects", func(t *testing.T, js jetstream.JetStream) {
			if err := js.DeleteStream(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "everything", Subjects: []string{"drover.default.in.1.*.*"}, Storage: jetstream.MemoryStorage}); err != nil {
				t.Fatal(err)
			}
		}, topology.Options{Memory: true}, in, "subjects drover.default.in.1.>", "taken by stream everything", "delete it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, embedded.Options{})
			if _, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, Partitions: 2}); err != nil {
				t.Fatal(err)
			}
			if tc.inTheWay != nil {
				tc.inTheWay(t, conn.JetStream())
			}
			before := map[string]jetstream.StreamConfig{}
			for _, n := range names(t, conn) {
				before[n] = config(t, conn, n)
			}
			_, err := topology.Ensure(t.Context(), conn, tc.o)
			got, ok := errors.AsType[*topology.ConflictError](err)
			if !ok || !errors.Is(err, topology.ErrConflict) {
				t.Fatalf("got %v, want a conflict", err)
			}
			if got.Stream != tc.stream || got.Field != tc.field || !strings.Contains(got.Have, tc.have) || got.Want == "" || !strings.Contains(got.Hint, tc.hint) {
				t.Fatalf("got %+v, want %s, %s, %s, %s", got, tc.stream, tc.field, tc.have, tc.hint)
			}
			for _, part := range []string{got.Stream, got.Field, got.Have, got.Want, got.Hint} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("got %q, want it to say %q", err, part)
				}
			}
			if d := cmp.Diff(before[tc.stream], configIfAny(t, conn.JetStream(), tc.stream)); d != "" {
				t.Errorf("%s was changed: %s", tc.stream, d)
			}
		})
	}
}

// A store from before formats had a number gets it.
func TestFormatIsNoted(t *testing.T) {
	conn := dial(t, embedded.Options{})
	const signals = "drover-default-signals"
	for range 2 {
		if _, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, Partitions: 1}); err != nil {
			t.Fatal(err)
		}
		c := config(t, conn, signals)
		if got := c.Metadata["drover.format"]; got != "2" {
			t.Fatalf("got format %q, want 2", got)
		}
		delete(c.Metadata, "drover.format")
		if _, err := conn.JetStream().UpdateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
}

func configIfAny(t *testing.T, js jetstream.JetStream, stream string) jetstream.StreamConfig {
	t.Helper()
	s, err := js.Stream(t.Context(), stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return jetstream.StreamConfig{}
	}
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().Config
}

func TestInvalidOptions(t *testing.T) {
	conn := dial(t, embedded.Options{})
	for want, o := range map[string]topology.Options{
		`namespace "a.b"`:   {Namespace: "a.b"},
		"-tasks-":           {Namespace: "a-tasks-b"},
		"Partitions is -1":  {Partitions: -1},
		"Partitions is 257": {Partitions: 257},
		"Replicas is 2":     {Replicas: 2},
		"Replicas is -1":    {Replicas: -1},
		"MaxBytes is 1024":  {MaxBytes: 1024},
		"MaxBytes is -2":    {MaxBytes: -2},
	} {
		if _, err := topology.Ensure(t.Context(), conn, o); !errors.Is(err, topology.ErrInvalidOptions) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %s", err, want)
		}
	}
	for want, o := range map[string]topology.ListOptions{
		"AckWait is 10ms": {AckWait: 10 * time.Millisecond},
		"MaxLists is -1":  {MaxLists: -1},
	} {
		if err := topology.EnsureList(t.Context(), conn, "default", "a", o); !errors.Is(err, topology.ErrInvalidOptions) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %s", err, want)
		}
	}
	if got := names(t, conn); len(got) != 0 {
		t.Fatalf("got streams %v from refused options, want none", got)
	}
}

func TestReplicasNeedACluster(t *testing.T) {
	conn := dial(t, embedded.Options{})
	_, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, Replicas: 3})
	if !errors.Is(err, topology.ErrRefused) || !strings.Contains(err.Error(), "set Replicas (--replicas) to 1") {
		t.Fatalf("got %v, want a refusal with the way out", err)
	}
	// The same for a namespace that exists.
	if _, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true}); err != nil {
		t.Fatal(err)
	}
	if _, err = topology.Ensure(t.Context(), conn, topology.Options{Memory: true, Replicas: 3}); !errors.Is(err, topology.ErrRefused) {
		t.Fatalf("got %v, want a refusal", err)
	}
}

func TestNoRoom(t *testing.T) {
	conn := dial(t, embedded.Options{MaxStore: 64 << 20})
	_, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, MaxBytes: 1 << 30})
	if !errors.Is(err, topology.ErrRefused) || !strings.Contains(err.Error(), "lower MaxBytes (--max-bytes)") {
		t.Fatalf("got %v, want a refusal with the way out", err)
	}
}
