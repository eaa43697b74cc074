package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover/broker/embedded"
)

func TestListens(t *testing.T) {
	s, err := embedded.Start(t.Context(), embedded.Options{Port: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatalf("dial %s: %v", s.ClientURL(), err)
	}
	defer nc.Close()
	if got, want := nc.MaxPayload(), int64(1<<20); got != want {
		t.Fatalf("got a max payload of %d, want %d", got, want)
	}
	if host, _, _ := net.SplitHostPort(strings.TrimPrefix(s.ClientURL(), "nats://")); host != "127.0.0.1" {
		t.Fatalf("got a server on %s, want 127.0.0.1", host)
	}
	if err := s.Health(); err != nil {
		t.Fatalf("got %v, want a healthy server", err)
	}
}

func TestMemoryRemovesItsFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := start(t, embedded.Options{})
	if !s.Memory() || s.Profile() != embedded.ProfileDev || s.ClientURL() != "" {
		t.Fatalf("got memory %v, profile %v, url %q, want true, dev and none", s.Memory(), s.Profile(), s.ClientURL())
	}
	js := connect(t, s)
	makeStream(t, s, js, "a")
	if _, err := js.Publish(t.Context(), "a.b", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.StoreDir()); err != nil {
		t.Fatal(err)
	}
	s.Shutdown()
	if _, err := os.Stat(s.StoreDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v, want the folder gone", err)
	}
	other := start(t, embedded.Options{})
	if other.StoreID() == s.StoreID() || other.Boot() == s.Boot() {
		t.Fatal("two memory servers share an id")
	}
}

func TestMemoryLimitRefusesAPublish(t *testing.T) {
	s := start(t, embedded.Options{MaxStore: 16 << 20})
	js := connect(t, s)
	makeStream(t, s, js, "a")
	body := make([]byte, 1<<19)
	for i := range 64 {
		_, err := js.Publish(t.Context(), fmt.Sprint("a.", i), body)
		if err == nil {
			continue
		}
		if e, ok := errors.AsType[*jetstream.APIError](err); !ok || i < 16 {
			t.Fatalf("got %v (%v) after %d of 512 KiB, want an API error above 8 MiB", err, e, i)
		}
		return
	}
	t.Fatal("32 MiB went into a store of 16")
}

func TestRestartKeepsDataAndStoreID(t *testing.T) {
	for _, p := range []embedded.Profile{embedded.ProfileDev, embedded.ProfileSingle} {
		t.Run(p.String(), func(t *testing.T) {
			o := embedded.Options{StoreDir: filepath.Join(t.TempDir(), "made", "on", "start"), Profile: p}
			first := start(t, o)
			js := connect(t, first)
			makeStream(t, first, js, "a")
			for i := range 100 {
				if _, err := js.Publish(t.Context(), "a.b", []byte(strconv.Itoa(i))); err != nil {
					t.Fatal(err)
				}
			}
			first.Shutdown()

			second := start(t, o)
			if second.StoreID() != first.StoreID() || len(second.StoreID()) != 26 {
				t.Fatalf("got store id %q, want %q", second.StoreID(), first.StoreID())
			}
			if second.Boot() == first.Boot() || len(second.Boot()) != 26 {
				t.Fatalf("got boot %q after %q, want another", second.Boot(), first.Boot())
			}
			str, err := connect(t, second).Stream(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			if got := str.CachedInfo().State; got.Msgs != 100 || got.LastSeq != 100 {
				t.Fatalf("got %d messages up to %d, want 100", got.Msgs, got.LastSeq)
			}
			if second.Memory() || second.Profile() != p {
				t.Fatalf("got memory %v, profile %v, want a file store, %v", second.Memory(), second.Profile(), p)
			}
		})
	}
}

func TestVirtualTime(t *testing.T) {
	wall := time.Now()
	for _, tc := range []struct {
		name string
		o    embedded.Options
	}{
		{"memory", embedded.Options{}},
		{"dev", embedded.Options{StoreDir: t.TempDir(), Profile: embedded.ProfileDev, SyncInterval: time.Hour}},
		{"single", embedded.Options{StoreDir: t.TempDir()}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, tc.o, func(t *testing.T, s *embedded.Server) {
				storage := jetstream.FileStorage
				if s.Memory() {
					storage = jetstream.MemoryStorage
				}
				kv, err := connect(t, s).CreateKeyValue(t.Context(), jetstream.KeyValueConfig{
					Bucket: "claims", Storage: storage, LimitMarkerTTL: time.Minute,
				})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := kv.Create(t.Context(), "a", nil, jetstream.KeyTTL(3*time.Hour)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(3*time.Hour - time.Second)
				if _, err := kv.Create(t.Context(), "a", nil); !errors.Is(err, jetstream.ErrKeyExists) {
					t.Fatalf("got %v a second early, want %v", err, jetstream.ErrKeyExists)
				}
				time.Sleep(3 * time.Second)
				if _, err := kv.Create(t.Context(), "a", nil); err != nil {
					t.Fatalf("got %v after three hours, want the key free", err)
				}
			})
		})
	}
	t.Logf("nine hours of virtual time in %v", time.Since(wall))
}

func TestRestartsInVirtualTime(t *testing.T) {
	o := embedded.Options{StoreDir: t.TempDir()}
	inBubble(t, o, func(t *testing.T, s *embedded.Server) {
		makeStream(t, s, connect(t, s), "a")
		for want := uint64(1); want <= 5; want++ {
			ack, err := connect(t, s).Publish(t.Context(), "a.b", nil)
			if err != nil {
				t.Fatal(err)
			}
			if ack.Sequence != want {
				t.Fatalf("got sequence %d, want %d", ack.Sequence, want)
			}
			s.Shutdown()
			time.Sleep(time.Hour)
			s = start(t, o)
		}
	})
}

func TestShutdownFromEverywhere(t *testing.T) {
	dir := t.TempDir()
	s := start(t, embedded.Options{StoreDir: dir})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s.Shutdown()
			// Each caller finds the store free, not only the one that did the work.
			if b, err := os.ReadFile(filepath.Join(dir, "drover.lock")); err != nil || len(b) != 0 {
				t.Errorf("got a lock file %q, %v after Shutdown, want an empty one", b, err)
			}
		})
	}
	wg.Wait()
	if _, err := s.Conn().InProcessConn(); err == nil {
		t.Fatal("a stopped server gave a connection")
	}
	if err := s.Health(); err == nil {
		t.Fatal("a stopped server is healthy")
	}
}

func TestStartIsAbandonedWithItsContext(t *testing.T) {
	dir := t.TempDir()
	cause := errors.New("the user left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := embedded.Start(ctx, embedded.Options{StoreDir: dir, DontListen: true}); !errors.Is(err, cause) {
		t.Fatalf("got %v, want %v", err, cause)
	}
	start(t, embedded.Options{StoreDir: dir}) // and the store is free
}

func TestContextEndsAfterStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := embedded.Start(ctx, embedded.Options{DontListen: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	cancel()
	makeStream(t, s, connect(t, s), "a")
	if err := s.Health(); err != nil {
		t.Fatalf("got %v, want a server that outlives the context of its start", err)
	}
}

func TestLog(t *testing.T) {
	log, hook := logtest.NewNullLogger()
	log.SetLevel(logrus.DebugLevel)
	s := start(t, embedded.Options{StoreDir: t.TempDir(), Logger: log})
	s.Shutdown()
	var ready bool
	levels := map[logrus.Level]int{}
	for _, e := range hook.AllEntries() {
		levels[e.Level]++
		if e.Level == logrus.InfoLevel && strings.Contains(e.Message, s.StoreID()) && strings.Contains(e.Message, "profile=single") {
			ready = true
		}
		if e.Level < logrus.InfoLevel {
			t.Errorf("got %v %q from a plain start, want no warning", e.Level, e.Message)
		}
	}
	if !ready || levels[logrus.InfoLevel] != 1 || levels[logrus.DebugLevel] == 0 {
		t.Fatalf("got lines %v, ready %v, want one info line with the options and the server's notices at debug", levels, ready)
	}
}

func TestOpenHostIsWarnedOf(t *testing.T) {
	log, hook := logtest.NewNullLogger()
	s, err := embedded.Start(t.Context(), embedded.Options{Host: "0.0.0.0", Port: -1, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	s.Shutdown()
	for _, e := range hook.AllEntries() {
		if e.Level == logrus.WarnLevel && strings.Contains(e.Message, "without authentication") {
			return
		}
	}
	t.Fatal("got no warning about a server that is open to the network")
}

func ExampleStart() {
	s, err := embedded.Start(context.Background(), embedded.Options{DontListen: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Shutdown()
	nc, err := nats.Connect("", nats.InProcessServer(s.Conn()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer nc.Close()
	fmt.Println(nc.Status(), "memory:", s.Memory(), "profile:", s.Profile())
	// Output: CONNECTED memory: true profile: dev
}
