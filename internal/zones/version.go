package zones

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Where package time looks on Unix, in its order.
var directories = []string{
	"/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo",
}

// Version says which database of zones is used: its version if that stands beside it, and where it
// is.
func Version() string { return version(append([]string{os.Getenv("ZONEINFO")}, directories...)) }

func version(directories []string) string {
	for _, dir := range directories {
		switch file, err := os.Stat(filepath.Join(dir, "UTC")); {
		case dir == "" || err != nil || !file.Mode().IsRegular():
		default:
			return versionIn(dir)
		}
	}
	return "the database linked in by " + runtime.Version() // which does not say its version
}

func versionIn(dir string) string {
	for _, name := range []string{"+VERSION", "tzdata.zi"} {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		defer f.Close()
		if line := bufio.NewScanner(f); line.Scan() && len(line.Text()) < 100 {
			return strings.TrimPrefix(strings.TrimSpace(line.Text()), "# version ") + " in " + dir
		}
	}
	return "the database in " + dir + ", of an unknown version"
}
