package main

import (
	"encoding/hex"
	"strings"
)

// escapes are GNU's: a name with one of these characters is written with an escape for each, and its line begins with a
// backslash.
var escapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)

// sumLine is the line that sha256sum of GNU coreutils 9 writes for a file, and its -c reads. Names are bytes: what is
// not UTF-8 stays as it is. A file "-" is written as "./-", since the former means standard input.
func sumLine(digest []byte, name string) string {
	if name == "-" {
		name = "./-"
	}
	escaped := escapes.Replace(name)
	mark := ""
	if escaped != name {
		mark = `\`
	}
	return mark + hex.EncodeToString(digest) + "  " + escaped + "\n"
}
