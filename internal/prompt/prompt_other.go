//go:build !linux

package prompt

import (
	"fmt"
	"time"
)

// Timer never wakes anybody: there is none on this system.
type Timer struct{}

// New returns nil and [ErrUnsupported].
func New(func()) (*Timer, error) { return nil, fmt.Errorf("timer: %w", ErrUnsupported) }

// Reset does nothing.
func (*Timer) Reset(time.Duration) {}

// Stop does nothing.
func (*Timer) Stop() {}

// Close does nothing.
func (*Timer) Close() {}
