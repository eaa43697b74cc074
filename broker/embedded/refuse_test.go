package embedded_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/broker/embedded"
)

// refused starts a server that must not start.
func refused(t *testing.T, o embedded.Options, want error, words ...string) {
	t.Helper()
	s, err := embedded.Start(t.Context(), o)
	if err == nil {
		s.Shutdown()
		t.Fatalf("got a server, want %v", want)
	}
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Fatalf("got %q, want it to say %q", err, w)
		}
	}
}

func TestSecondServerOnAStore(t *testing.T) {
	dir := t.TempDir()
	s := start(t, embedded.Options{StoreDir: dir})
	o := embedded.Options{StoreDir: dir, DontListen: true}
	refused(t, o, embedded.ErrStoreLocked, dir, fmt.Sprintf("pid %d", os.Getpid()), "this process", "another StoreDir")

	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	o.StoreDir = link
	refused(t, o, embedded.ErrStoreLocked)

	s.Shutdown()
	start(t, o)
}

func TestStoreOfAKilledProcess(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), exe)
	child.Env = append(os.Environ(), holdStore+"="+dir)
	if _, err := child.StdinPipe(); err != nil { // it ends with this process
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var id, boot string
	line, err := bufio.NewReader(out).ReadString('\n')
	if _, scanErr := fmt.Sscanf(line, "held %s %s", &id, &boot); scanErr != nil {
		t.Fatalf("got %q, %v from the child, want a held store", line, err)
	}
	o := embedded.Options{StoreDir: dir, DontListen: true}
	refused(t, o, embedded.ErrStoreLocked, fmt.Sprintf("pid %d on", child.Process.Pid))

	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err == nil {
		t.Fatal("the child ended by itself")
	}
	s := start(t, o)
	if s.StoreID() != id || s.Boot() == boot {
		t.Fatalf("got id %s, boot %s, want id %s and a boot other than %s", s.StoreID(), s.Boot(), id, boot)
	}
}

func TestHostileOptions(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct {
		field string
		o     embedded.Options
	}{
		{"Profile", embedded.Options{Profile: -1}},
		{"Profile", embedded.Options{StoreDir: dir, Profile: 99}},
		{"Profile", embedded.Options{Profile: embedded.ProfileSingle}},
		{"SyncInterval", embedded.Options{StoreDir: dir, SyncInterval: time.Second}},
		{"SyncInterval", embedded.Options{SyncInterval: -1}},
		{"SyncInterval", embedded.Options{SyncInterval: 1000 * time.Hour}},
		{"StoreDir", embedded.Options{StoreDir: "a\x00b"}},
		{"Port", embedded.Options{Port: -2}},
		{"Port", embedded.Options{Port: 65536}},
		{"Host", embedded.Options{Host: "127.0.0.1:4222"}},
		{"Host", embedded.Options{Host: "nats://localhost"}},
		{"Host", embedded.Options{Host: "two words"}},
		{"Host", embedded.Options{Host: "line\nbreak"}},
		{"MaxPayload", embedded.Options{MaxPayload: -1}},
		{"MaxPayload", embedded.Options{MaxPayload: 64 << 10}},
		{"MaxPayload", embedded.Options{MaxPayload: 1 << 30}},
		{"MaxStore", embedded.Options{MaxStore: -1}},
		{"MaxStore", embedded.Options{MaxStore: 1 << 10}},
		{"ServerName", embedded.Options{ServerName: "two words"}},
		{"ServerName", embedded.Options{ServerName: "ok\r\nINFO {}"}},
		{"ServerName", embedded.Options{ServerName: strings.Repeat("a", 65)}},
	} {
		t.Run(tc.field, func(t *testing.T) {
			tc.o.DontListen = true
			refused(t, tc.o, embedded.ErrInvalidOptions, tc.field, "use ")
		})
	}
}

func TestLargestPayload(t *testing.T) {
	s := start(t, embedded.Options{MaxPayload: 64 << 20, ServerName: "n.a-m_e"})
	nc, err := nats.Connect("", nats.InProcessServer(s.Conn()))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if nc.MaxPayload() != 64<<20 || nc.ConnectedServerName() != "n.a-m_e" {
		t.Fatalf("got %d bytes on %q, want 64 MiB on n.a-m_e", nc.MaxPayload(), nc.ConnectedServerName())
	}
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	port := l.Addr().(*net.TCPAddr).Port
	refused(t, embedded.Options{StoreDir: dir, Port: port}, embedded.ErrPortInUse, l.Addr().String(), "another Port")
	start(t, embedded.Options{StoreDir: dir}) // the store was given free
}

func TestHostOfAnotherMachine(t *testing.T) {
	_, err := embedded.Start(t.Context(), embedded.Options{Host: "203.0.113.1", Port: -1})
	if err == nil || !strings.Contains(err.Error(), "Host must be an address of this machine") {
		t.Fatalf("got %v, want it to say what Host must be", err)
	}
}

func TestUnusableFolders(t *testing.T) {
	for _, tc := range []struct {
		name string
		dir  func(t *testing.T, tmp string) string
	}{
		{"a file", func(t *testing.T, tmp string) string {
			return write(t, filepath.Join(tmp, "file"), "")
		}},
		{"below a file", func(t *testing.T, tmp string) string {
			return filepath.Join(write(t, filepath.Join(tmp, "file"), ""), "store")
		}},
		{"lock file is a folder", func(t *testing.T, tmp string) string {
			return mkdir(t, filepath.Join(tmp, "drover.lock"), tmp)
		}},
		{"store id is a folder", func(t *testing.T, tmp string) string {
			return mkdir(t, filepath.Join(tmp, "store-id"), tmp)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := tc.dir(t, t.TempDir())
			refused(t, embedded.Options{StoreDir: dir, DontListen: true}, embedded.ErrStoreUnusable, dir, "another StoreDir")
		})
	}
	t.Run("no temporary folder", func(t *testing.T) {
		t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
		refused(t, embedded.Options{DontListen: true}, embedded.ErrStoreUnusable, "TMPDIR")
	})
}

func TestJetStreamFolderIsAFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "jetstream"), "")
	_, err := embedded.Start(t.Context(), embedded.Options{StoreDir: dir, DontListen: true})
	if err == nil || !strings.Contains(err.Error(), "storage directory is not a directory") {
		t.Fatalf("got %v, want the server's own words", err)
	}
}

func TestDamagedStoreID(t *testing.T) {
	for _, text := range []string{"", "\n", "short", strings.Repeat("A", 27), strings.Repeat("a", 26), strings.Repeat("\x00", 26)} {
		dir := t.TempDir()
		path := write(t, filepath.Join(dir, "store-id"), text)
		refused(t, embedded.Options{StoreDir: dir, DontListen: true}, embedded.ErrStoreDamaged, path, "restore it", "delete it")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		start(t, embedded.Options{StoreDir: dir}).Shutdown()
	}
}

func TestUnrecoveredStreamRefusesTheStart(t *testing.T) {
	dir := oddDir(t)
	s := start(t, embedded.Options{StoreDir: dir})
	js := connect(t, s)
	makeStream(t, s, js, "history")
	makeStream(t, s, js, "empty")
	if _, err := js.Publish(t.Context(), "history.a", []byte("x")); err != nil {
		t.Fatal(err)
	}
	s.Shutdown()
	streams := filepath.Join(dir, "jetstream", "$G", "streams")
	write(t, filepath.Join(streams, "history", "meta.inf"), "{")
	refused(t, embedded.Options{StoreDir: dir, DontListen: true}, embedded.ErrStoreDamaged,
		filepath.Join(streams, "history"), "restore it from a backup")

	// The way out that the error names, and a stream without messages, which a crash while making it leaves.
	if err := os.Rename(filepath.Join(streams, "history"), filepath.Join(t.TempDir(), "history")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(streams, "empty", "meta.inf"), "{")
	s = start(t, embedded.Options{StoreDir: dir})
	if err := s.Health(); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Fatalf("got %v, want the stream named", err)
	}
	makeStream(t, s, connect(t, s), "empty")
	if err := s.Health(); err != nil {
		t.Fatalf("got %v after the stream was made again, want a healthy server", err)
	}
}

// oddDir is a folder whose name would be a pattern.
func oddDir(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "a [store]*")
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mkdir(t *testing.T, path, result string) string {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return result
}
