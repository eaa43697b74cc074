//go:build !linux

package terminal

import "os"

func width(*os.File) int { return 0 }
