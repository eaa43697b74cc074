// Package lib is of another module: of its functions only what no workflow may do matters.
package lib

import (
	"sync"
	"time"
)

var (
	mu    sync.Mutex
	cache = map[string]string{}
)

// Cached writes to a variable of its package, which is no concern of others.
func Cached(s string) string {
	mu.Lock()
	defer mu.Unlock()
	cache[s] = s
	return cache[s]
}

// Stamp has the clock.
func Stamp(s string) string { return Cached(s) + time.Now().String() }
