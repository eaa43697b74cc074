//go:build !linux

package slack

import "errors"

// Begin calls start.
func Begin(start func() error) error { return start() }

// Widen does nothing: only Linux lets a process choose.
func Widen() error { return errors.ErrUnsupported }
