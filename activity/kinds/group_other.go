//go:build !unix

package kinds

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

// killGroup kills the command alone: there are no process groups here.
func killGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }

func exitCode(s *os.ProcessState) int { return s.ExitCode() }
