// Package helpers has functions that workflow code calls.
package helpers

import (
	"math/rand"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/droverhq/drover/decider/workflow"
)

var (
	n  int
	mu sync.Mutex
)

func Name() string { return os.Getenv("NAME") } // want Name:`os.Getenv at helpers.go:\d+`

func Deep() string { return deeper() } // want Deep:`os.Getenv`

func deeper() string { return Name() } // want deeper:`os.Getenv`

// Even and odd call each other.
func Even(i int) bool { return i == 0 || odd(i-1) } // want Even:`time.Now`

func odd(i int) bool { // want odd:`time.Now`
	if time.Now().IsZero() {
		return false
	}
	return i == 1 || Even(i-1)
}

type Of[T any] struct{}

func (Of[T]) Now() time.Time { return time.Now() } // want Now:`time.Now`

func Count() { n++ } // want Count:`a write to n`

func Rune(r rune) rune { return r + rune(rand.Intn(2)) } // want Rune:`rand.Intn`

func Any(m map[string]int) (all []string) { // want Any:`an append to all`
	for k := range m {
		all = append(all, k)
	}
	return all
}

func Sorted(m map[string]int) (all []string) {
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

func Logged() string {
	println(time.Now().String()) //drover:ok only printed
	return "x"
}

func Locked() {
	mu.Lock()
	defer mu.Unlock()
}

func InWorkflow(ctx workflow.Context) {
	_ = time.Now() // want `time.Now`
}
