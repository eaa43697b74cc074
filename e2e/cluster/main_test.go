package cluster

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/droverhq/drover/e2e/kit"
)

// rounds multiplies the faults of each test, for longer campaigns.
var rounds = flag.Int("rounds", 1, "how often each test injects its faults")

// binary is cmd/drover, built for this run.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	code := kit.Main(m, &binary)
	if err := shared.close(code != 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// network is where the nodes live: one namespace for each on a bridge, or the loopback.
type network struct {
	prefix string // of the names of namespaces; empty on the loopback
	subnet string
	bridge string
}

const bridgePort = 254

// newNetwork makes the namespaces if this is root; then they must be possible.
func newNetwork() (*network, error) {
	if os.Getuid() != 0 {
		return &network{}, nil
	}
	sweepNetworks()
	pid := os.Getpid()
	n := &network{prefix: fmt.Sprintf("drover-%d-", pid), bridge: fmt.Sprintf("drv%d", pid)}
	n.subnet = fmt.Sprintf("10.%d.%d.", 200+pid/250%50, pid%250)
	steps := [][]string{
		{"link", "add", n.bridge, "type", "bridge"},
		{"addr", "add", n.host(bridgePort) + "/24", "dev", n.bridge},
		{"link", "set", n.bridge, "up"},
	}
	for i := 1; i <= size; i++ {
		ns, outside := n.space(i), n.cable(i)
		steps = append(
			steps,
			[]string{"netns", "add", ns},
			[]string{"link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", ns},
			[]string{"link", "set", outside, "master", n.bridge},
			[]string{"link", "set", outside, "up"},
			[]string{"-n", ns, "addr", "add", n.host(i) + "/24", "dev", "eth0"},
			[]string{"-n", ns, "link", "set", "eth0", "up"},
			[]string{"-n", ns, "link", "set", "lo", "up"},
		)
	}
	for _, s := range steps {
		if err := ip(s...); err != nil {
			n.close()
			return nil, fmt.Errorf("this is root, so that network namespaces must be possible: %w", err)
		}
	}
	return n, nil
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (n *network) apart() bool        { return n.prefix != "" }
func (n *network) space(i int) string { return n.prefix + strconv.Itoa(i) }
func (n *network) cable(i int) string { return n.bridge + "-" + strconv.Itoa(i) }

func (n *network) host(i int) string {
	if !n.apart() {
		return "127.0.0.1"
	}
	return n.subnet + strconv.Itoa(i)
}

// in is a command that runs where node i lives.
func (n *network) in(i int, name string, args ...string) *exec.Cmd {
	if !n.apart() {
		return exec.Command(name, args...)
	}
	return exec.Command("ip", append([]string{"netns", "exec", n.space(i), name}, args...)...)
}

// cut pulls the cable of a node; mend plugs it in.
func (n *network) cut(i int) error  { return ip("link", "set", n.cable(i), "down") }
func (n *network) mend(i int) error { return ip("link", "set", n.cable(i), "up") }

func (n *network) close() {
	if !n.apart() {
		return
	}
	for i := 1; i <= size; i++ {
		_ = ip("netns", "del", n.space(i)) // it may not have been made
	}
	_ = ip("link", "del", n.bridge)
}

// sweepNetworks removes what test binaries have left that were killed.
func sweepNetworks() {
	out, err := exec.Command("ip", "netns", "list").Output()
	if err != nil {
		return
	}
	for line := range strings.Lines(string(out)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		var pid, i int
		if n, _ := fmt.Sscanf(name, "drover-%d-%d", &pid, &i); n != 2 || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue
		}
		_ = ip("netns", "del", name) // another test binary may be at it too
		_ = ip("link", "del", fmt.Sprintf("drv%d", pid))
	}
}
