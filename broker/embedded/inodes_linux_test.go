package embedded_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/droverhq/drover/broker/embedded"
)

// A file system that has run out of inodes takes no file, and most of its bytes are free. Who starts a server there is told which it is.
func TestOutOfInodes(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a mount of its own needs root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=32m,nr_inodes=100"); err != nil {
		t.Fatalf("a tmpfs of its own, as root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	o := embedded.Options{StoreDir: filepath.Join(dir, "store"), DontListen: true}
	s := start(t, o)
	makeStream(t, s, connect(t, s), "S")
	s.Shutdown()
	if err := os.Remove(filepath.Join(o.StoreDir, "ended")); err != nil { // the next start would, and have an inode then
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("ballast%d", i)))
		if err != nil {
			break
		}
		_ = f.Close()
	}
	for _, store := range []string{o.StoreDir, filepath.Join(dir, "another")} {
		o.StoreDir = store
		s, err := embedded.Start(t.Context(), o)
		if err == nil {
			s.Shutdown()
			t.Fatalf("%s: a server has started without an inode", store)
		}
		if !strings.Contains(err.Error(), "no free inode of 100") {
			t.Errorf("%s: got %q, want to be told of the inodes", store, err)
		}
	}
}
