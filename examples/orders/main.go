// Command orders is a shop: the story that workflows are told by. An order reserves goods, waits for
// an approval if it is large and for the customer to change their mind, is paid, and is shipped;
// whatever ends it before, what was done is undone.
//
//	go run ./examples/orders
//
// starts everything on a free port, places six orders that end in six ways, and prints the steps of
// each. It needs the go command, since it builds the two servers that it runs: nats-server with the
// users of nats.conf, and "drover server". Beside a server that runs, which must know of no other
// shop:
//
//	drover dev &
//	go run ./examples/orders -nats nats://127.0.0.1:4222
//
// Where to read on: order.go has the workflows of an order and of its payment, contracts.go what
// they are agreed on, shop.go and pci.go the activities, the latter in a process of its own;
// customers.go is who places orders, and house.go starts servers.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider/workflow"
)

// limit bounds a whole run of the program, which takes a few seconds.
const limit = 2 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are the flags.
type options struct {
	pci           bool // be the card worker
	nats          string
	nkey, pciNKey string
	prefix        string
}

// run returns the exit code: 0 every order ended as it should, 1 one did not or something failed, 2 wrong usage.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "orders:", err)
		return 2
	}
	if o.pci {
		err = pciWorker(ctx, o, stdin, stdout)
	} else {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		err = business(ctx, o, &lines{w: stdout})
	}
	if err != nil {
		fmt.Fprintln(stderr, "orders:", err)
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (*options, error) {
	var o options
	if len(args) > 0 && args[0] == "pci" {
		o.pci, args = true, args[1:]
	}
	f := flag.NewFlagSet("orders", flag.ContinueOnError)
	f.SetOutput(io.Discard) // who calls prints the error
	f.StringVar(&o.nats, "nats", "", "address of a NATS server with Drover beside it (default: start both)")
	f.StringVar(&o.nkey, "nkey", "", "file with the NKEY seed to connect with")
	f.StringVar(&o.pciNKey, "pci-nkey", "", "that of the card worker (default that of -nkey)")
	f.StringVar(&o.prefix, "prefix", "order", "how the workflow ids begin")
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		f.SetOutput(stderr)
		fmt.Fprintln(stderr, "usage: orders [flags], or orders pci [flags] for the card worker alone")
		f.PrintDefaults()
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w; see -help", err)
	case f.NArg() > 0:
		return nil, fmt.Errorf("argument %q is too much", f.Arg(0))
	case o.prefix == "":
		return nil, errors.New("-prefix is empty: workflow ids need a beginning")
	case o.nats == "" && (o.pci || o.nkey != "" || o.pciNKey != ""):
		return nil, errors.New("-nats is missing: say where the server is")
	}
	return &o, nil
}

// business runs the shop for as long as the orders take.
func business(ctx context.Context, o *options, out *lines) error {
	if o.nats == "" {
		h, err := openHouse(ctx)
		if err != nil {
			return err
		}
		defer h.close()
		o.nats, o.nkey, o.pciNKey = h.url, h.key(userShop), h.key(userPCI)
		fmt.Fprintf(out, "nats-server and drover server are up at %s\n", o.nats)
	}
	client, err := drover.Connect(ctx, &drover.Options{URL: o.nats, NKeyFile: o.nkey})
	if err != nil {
		return err
	}
	defer client.Close()

	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	stopCards, err := startCardWorker(ctx, o, out, fail)
	if err != nil {
		return err
	}
	defer stopCards()
	s := newShop(shelf)
	stopWorker := runWorker(ctx, s.worker(client), fail)
	defer stopWorker()
	err = serveCustomers(ctx, client, o.prefix, s, out)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx) // all that failed did so because of it
	}
	return err
}

// worker is the worker of the shop: its workflows and its activities.
func (s *shop) worker(client *drover.Client) *drover.Worker {
	w := client.Worker(&drover.WorkerOptions{Lists: []string{listShop}})
	workflow.Implement(w, Deliver, deliver, nil)
	workflow.Implement(w, Pay, pay, nil)
	s.implement(w)
	return w
}

// runWorker runs the worker of the shop until the returned function is called.
func runWorker(ctx context.Context, w *drover.Worker, fail func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := w.Run(ctx); err != nil {
			fail(err)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// startCardWorker starts this program again as the card worker, with its own credentials and no other.
func startCardWorker(ctx context.Context, o *options, out *lines, fail func(error)) (stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{"pci", "-nats", o.nats}
	if key := cmp.Or(o.pciNKey, o.nkey); key != "" {
		args = append(args, "-nkey", key)
	}
	cmd := exec.Command(self, args...)
	complaints := &tail{}
	cmd.Stdout, cmd.Stderr = out, complaints
	alive, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := newProcess("the card worker", cmd, complaints)
	go func() {
		if err := p.wait(ctx); err != nil {
			fail(err)
		}
	}()
	return func() {
		alive.Close() // it ends with its standard input
		p.stop()
	}, nil
}

// lines is standard output for several who write whole lines.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
