package embedded_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/embedded"
)

// staged makes stream a, which takes batches, and stages them.
func staged(t *testing.T, s *embedded.Server) jetstream.JetStream {
	t.Helper()
	js := connect(t, s)
	if _, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "a", Subjects: []string{"a.>"}, AllowAtomicPublish: true}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // again is nothing new
		if err := s.Stage("a"); err != nil {
			t.Fatal(err)
		}
	}
	return js
}

// batch publishes so many messages as one batch, and returns the answer.
func batch(t *testing.T, js jetstream.JetStream, id string, n int, commit bool) string {
	t.Helper()
	var last *nats.Msg
	for i := range n {
		m := nats.NewMsg("a.b")
		m.Header.Set("Nats-Batch-Id", id)
		m.Header.Set("Nats-Batch-Sequence", string(rune('1'+i)))
		if i == n-1 && commit {
			m.Header.Set("Nats-Batch-Commit", "1")
		}
		var err error
		if last, err = js.Conn().RequestMsgWithContext(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	return string(last.Data)
}

func count(t *testing.T, js jetstream.JetStream) uint64 {
	t.Helper()
	s, err := js.Stream(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

// What the server gathers of a batch lies in memory, is gone with the server, and a start after it has what was committed.
func TestBatchesAreStagedInMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		s := start(t, embedded.Options{StoreDir: t.TempDir(), Profile: embedded.ProfileSingle})
		if err := s.Stage("a"); !errors.Is(err, embedded.ErrNoStage) {
			t.Fatalf("got %v, want ErrNoStage", err)
		}
		return
	}
	dir := t.TempDir()
	o := embedded.Options{StoreDir: dir, Profile: embedded.ProfileSingle}
	for round := range uint64(2) {
		s := start(t, o)
		js := staged(t, s)
		link := filepath.Join(dir, "jetstream", "$G", "streams", "a", "batches")
		memory, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(memory, "/dev/shm/") {
			t.Fatalf("got %q, %v, want a folder in /dev/shm", memory, err)
		}
		batch(t, js, "open", 2, false)
		if files, err := os.ReadDir(memory); err != nil || len(files) != 1 {
			t.Fatalf("got %v, %v in memory, want the batch that is open", files, err)
		}
		if got := batch(t, js, "whole", 3, true); !strings.Contains(got, `"count":3`) {
			t.Fatalf("got the answer %s", got)
		}
		if got := count(t, js); got != 3*(round+1) {
			t.Fatalf("got %d messages, want %d", got, 3*(round+1))
		}
		s.Shutdown()
		if _, err := os.Stat(memory); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("got %v, want the folder in memory gone", err)
		}
	}
}

// What a killed server has left in memory is removed by the next one that stages, and what a living one has is not.
func TestStagesOfTheDeadAreRemoved(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	dead, err := os.MkdirTemp("/dev/shm", "drover-stage-DEAD-")
	if err != nil {
		t.Fatal(err)
	}
	var links []string
	for range 2 {
		dir := t.TempDir()
		staged(t, start(t, embedded.Options{StoreDir: dir, Profile: embedded.ProfileSingle}))
		links = append(links, filepath.Join(dir, "jetstream", "$G", "streams", "a", "batches"))
	}
	if _, err := os.Stat(dead); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want the folder of the dead gone", err)
	}
	for _, link := range links {
		if _, err := os.Stat(link); err != nil {
			t.Errorf("got %v, want the folder of the living to stay", err)
		}
	}
}

func TestStageRefuses(t *testing.T) {
	single := start(t, embedded.Options{StoreDir: t.TempDir(), Profile: embedded.ProfileSingle})
	for name, err := range map[string]error{
		"no such stream":    single.Stage("none"),
		"a path":            single.Stage("../a"),
		"nothing":           single.Stage(""),
		"profile dev":       start(t, embedded.Options{StoreDir: t.TempDir(), Profile: embedded.ProfileDev}).Stage("a"),
		"a store in memory": start(t, embedded.Options{}).Stage("a"),
	} {
		if !errors.Is(err, embedded.ErrNoStage) {
			t.Errorf("%s: got %v, want ErrNoStage", name, err)
		}
	}
}
