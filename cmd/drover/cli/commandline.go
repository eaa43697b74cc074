package cli

import (
	"regexp"
	"strings"

	"github.com/spf13/pflag"
)

// whereFlags are the global flags that say where to connect, without secrets.
var whereFlags = []string{
	"namespace", "nats", "context", "creds", "nkey", "user", "tlsca", "tlscert", "tlskey",
}

// noteWhere keeps where this command connects, for commands that it tells of.
func (a *App) noteWhere(fs *pflag.FlagSet) {
	a.where = nil
	for _, name := range whereFlags {
		if f := fs.Lookup(name); f != nil && f.Changed {
			a.where = append(a.where, "--"+name, f.Value.String())
		}
	}
}

// CommandLine is a command to type in a shell, which connects as this one.
func (a *App) CommandLine(words ...string) string {
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
