// Package terminal tells how wide the terminal is that somebody reads.
package terminal

import (
	"io"
	"os"
)

// Width is how many columns the terminal after w has; 0 if it is none, or cannot be asked.
func Width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	return width(f)
}
