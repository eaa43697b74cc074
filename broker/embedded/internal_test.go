package embedded

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
)

func TestUnusableNamesTheWayOut(t *testing.T) {
	err := unusable("/srv/drover", &fs.PathError{Op: "mkdir", Path: "/srv/drover", Err: fs.ErrPermission})
	if !errors.Is(err, ErrStoreUnusable) || !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("got %v, want both causes kept", err)
	}
	if !strings.Contains(err.Error(), "run as its owner") {
		t.Fatalf("got %q, want a way out", err)
	}
}

func TestBridge(t *testing.T) {
	log, hook := logtest.NewNullLogger()
	log.SetLevel(logrus.TraceLevel)
	b := &bridge{log: log}
	b.Noticef("  up %d", 1)
	b.Warnf("slow %s", "disk")
	b.Errorf("bad")
	b.Debugf("payload %s", "secret")
	b.Tracef("payload %s", "secret")
	b.Fatalf("first %d", 1)
	b.Fatalf("second")
	want := []string{"debug nats: up 1", "warning nats: slow disk", "error nats: bad", "error nats: first 1", "error nats: second"}
	for i, e := range hook.AllEntries() {
		if got := e.Level.String() + " " + e.Message; i >= len(want) || got != want[i] {
			t.Errorf("line %d: got %q, want %q", i, got, want[min(i, len(want)-1)])
		}
	}
	if got := len(hook.AllEntries()); got != len(want) {
		t.Errorf("got %d lines, want %d", got, len(want))
	}
	if got := b.fatal.Load(); got == nil || *got != "first 1" {
		t.Errorf("got %v, want the first fatal one", got)
	}
}

func TestServerOptions(t *testing.T) {
	for _, tc := range []struct {
		name        string
		o           Options
		always      bool
		interval    time.Duration
		memory, max int64
	}{
		{"memory", Options{}, false, time.Second, 1 << 30, 1 << 30},
		{"small memory", Options{MaxStore: 1 << 25}, false, time.Second, 1 << 25, 1 << 25},
		{"single", Options{StoreDir: "/s"}, true, time.Second, 1 << 30, 0},
		{"dev", Options{StoreDir: "/s", Profile: ProfileDev, MaxStore: 1 << 40}, false, time.Second, 1 << 30, 1 << 40},
		{"dev in virtual time", Options{StoreDir: "/s", Profile: ProfileDev, SyncInterval: time.Hour}, false, time.Hour, 1 << 30, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &Server{opts: tc.o.withDefaults(), store: &store{dir: "/s", id: "ABCDEFGHIJKLMNOPQRSTUVWXYZ", temporary: tc.o.StoreDir == ""}}
			so := s.serverOptions()
			if so.SyncAlways != tc.always || so.SyncInterval != tc.interval {
				t.Errorf("got sync always %v, every %v, want %v, %v", so.SyncAlways, so.SyncInterval, tc.always, tc.interval)
			}
			if so.JetStreamMaxMemory != tc.memory || so.JetStreamMaxStore != tc.max {
				t.Errorf("got limits %d, %d, want %d, %d", so.JetStreamMaxMemory, so.JetStreamMaxStore, tc.memory, tc.max)
			}
			if !so.NoSigs || so.HTTPPort != 0 || so.ServerName != "drover-abcdefgh" {
				t.Errorf("got signals off %v, HTTP on %d, name %q, want true, 0, drover-abcdefgh", so.NoSigs, so.HTTPPort, so.ServerName)
			}
		})
	}
}

func TestOptionsPrint(t *testing.T) {
	for want, o := range map[string]Options{
		"store=memory profile=dev listen=127.0.0.1:4222 max-payload=1048576 max-store=1073741824": {},
		"store=/s profile=single listen=127.0.0.1:random max-payload=1048576 max-store=free-disk": {StoreDir: "/s", Port: -1},
		"store=/s profile=dev sync=1s listen=[::1]:5 max-payload=1048576 max-store=free-disk":     {StoreDir: "/s", Profile: ProfileDev, Host: "::1", Port: 5},
		"store=memory profile=Profile(7) listen=none max-payload=1048576 max-store=1073741824":    {Profile: 7, DontListen: true},
	} {
		if got := o.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
