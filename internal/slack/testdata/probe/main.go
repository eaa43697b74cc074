// Probe widens the slack and prints what its threads have, those that were there before and those that came later, and what a program has that it
// begins, and its own thread after that. With "tell" it is that program; with a number that is its first thread's slack before.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/droverhq/drover/internal/slack"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "tell" {
		fmt.Println("another program:", own())
		return
	}
	if len(os.Args) > 1 { // a slack of somebody's choice
		n, _ := strconv.Atoi(os.Args[1])
		runtime.LockOSThread()
		if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(n), 0, 0, 0); err != nil {
			fmt.Println(err)
		}
	}
	there := threads(8)
	there.begin()
	fmt.Println("widen:", slack.Widen())
	there.tell("before")
	later := threads(8)
	later.begin()
	later.tell("later")
	runtime.LockOSThread()
	cmd := exec.Command(os.Args[0], "tell")
	cmd.Stdout = os.Stdout
	if err := slack.Begin(cmd.Start); err != nil {
		fmt.Println(err)
	}
	_ = cmd.Wait()
	fmt.Println("after it:", own())
}

// own is what the calling thread has.
func own() string {
	n, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	return fmt.Sprint(n, " ", err)
}

// crowd is goroutines that have a thread each.
type crowd struct {
	n            int
	ready, ended sync.WaitGroup
	ask          chan struct{}
	told         chan string
}

func threads(n int) *crowd { return &crowd{n: n, ask: make(chan struct{}), told: make(chan string, n)} }

func (c *crowd) begin() {
	for range c.n {
		c.ready.Add(1)
		c.ended.Go(func() {
			runtime.LockOSThread()
			c.ready.Done()
			<-c.ask
			c.told <- own()
		})
	}
	c.ready.Wait()
}

func (c *crowd) tell(when string) {
	close(c.ask)
	for range c.n {
		fmt.Println(when+":", <-c.told)
	}
	c.ended.Wait()
}
