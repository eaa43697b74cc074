package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/e2e/kit"
	"github.com/droverhq/drover/schemas"
)

// programTime is how long the program may take for anything: it builds servers.
const programTime = 5 * time.Minute

// asOrders makes this test binary the program itself.
const asOrders = "DROVER_ORDERS_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asOrders) != "" {
		main()
	}
	os.Exit(m.Run())
}

// program is the program as a process.
func program(t *testing.T, tmp string, args ...string) *exec.Cmd {
	t.Helper()
	return kit.Self(t, []string{asOrders + "=1", "TMPDIR=" + tmp}, args...)
}

// told is what every run of the program prints.
var told = []string{
	"order-1    reserve\n", "order-1    has waited\n", "order-1    paid\n", "order-1    ship\n", "order-1    completed\n",
	"order-2    cancel requested\n", "order-2    release\n", "order-2    canceled\n",
	"order-3    approve\n", "order-3    completed\n",
	"order-4    failed: not-approved-in-time\n",
	"order-5    not paid: card-declined\n", "order-5    release\n",
	"order-6    ship failed: address-unknown\n", "order-6    refund\n",
	"in stock: 9 kettles and 1 grand piano; shipped: 2; still reserved: 0\n6 orders in ",
}

// The program as a newcomer runs it: with servers of its own, users, and a card worker that is confined.
func TestProgram(t *testing.T) {
	r := kit.Run(t, program(t, t.TempDir()))
	if r.Code != 0 || r.Stderr != "" {
		t.Fatalf("got %+v, want exit code 0 and no complaint", r)
	}
	for _, want := range append(told, "it may not look at orders\n") {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("got no %q in\n%s", want, r.Stdout)
		}
	}
}

// A program that is told to stop takes everything with it.
func TestProgramIsStopped(t *testing.T) {
	tmp := t.TempDir()
	p := kit.Start(t, filepath.Join(t.TempDir(), "orders.log"), program(t, tmp))
	url := ""
	for line := ""; !strings.Contains(line, " placed: "); {
		line = p.Line(programTime)
		if _, at, is := strings.Cut(line, " are up at "); is {
			url = at
		}
	}
	p.Signal(syscall.SIGTERM)
	code := p.Ends(programTime)
	errs, err := os.ReadFile(p.Log)
	if err != nil || code != 1 || strings.Count(string(errs), "\n") != 1 {
		t.Errorf("got %v, exit code %d and %q, want exit code 1 and one line", err, code, errs)
	}
	if nc, err := nats.Connect(url, nats.MaxReconnects(0)); !errors.Is(err, nats.ErrNoServers) {
		t.Errorf("got %v and %v at %q, want nobody there", nc, err, url)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("got %v and %v in the temporary folder, want nothing", left, err)
	}
}

// The program beside a server that runs, twice.
func TestRunningServer(t *testing.T) {
	e := drovertest.Start(t, nil)
	for range 2 {
		r := kit.Run(t, program(t, t.TempDir(), "-nats", e.URL()))
		if r.Code != 0 || r.Stderr != "" {
			t.Fatalf("got %+v, want exit code 0 and no complaint", r)
		}
		for _, want := range append(told, "with these credentials it might look at orders too\n") {
			if !strings.Contains(r.Stdout, want) {
				t.Errorf("got no %q in\n%s", want, r.Stdout)
			}
		}
	}
	// An order under way is left alone.
	if _, err := e.Client.Start(t.Context(), "other", nil, &drover.StartOptions{ID: "order-3"}); err != nil {
		t.Fatal(err)
	}
	r := kit.Run(t, program(t, t.TempDir(), "-nats", e.URL()))
	if r.Code != 1 || !strings.Contains(r.Stderr, "order-3") {
		t.Errorf("got %+v, want exit code 1 and order-3", r)
	}
	if err := e.Client.Run("order-3", "").Terminate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

func TestUsage(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"help", []string{"-h"}, 0, "-pci-nkey"},
		{"unknown flag", []string{"-x"}, 2, "-x"},
		{"argument", []string{"x"}, 2, `argument "x" is too much`},
		{"card worker of nobody", []string{"pci"}, 2, "-nats is missing"},
		{"key to nothing", []string{"-nkey", "k"}, 2, "-nats is missing"},
		{"no prefix", []string{"-prefix", ""}, 2, "-prefix is empty"},
		{"no key", []string{"-nats", "nats://127.0.0.1:1", "-nkey", "gone.nk"}, 1, "gone.nk"},
		{"nobody there", []string{"-nats", "nats://127.0.0.1:1"}, 1, "127.0.0.1:1"},
		{"no card worker there", []string{"pci", "-nats", "nats://127.0.0.1:1"}, 1, "127.0.0.1:1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := run(t.Context(), tc.args, strings.NewReader(""), &out, &errs); code != tc.code || out.Len() > 0 {
				t.Errorf("got exit code %d and %q, want %d and nothing", code, &out, tc.code)
			}
			if !strings.Contains(errs.String(), tc.says) {
				t.Errorf("got %q, want it to say %q", &errs, tc.says)
			}
		})
	}
}

// A card worker without a right that it needs says so and ends.
func TestCardWorkerWithoutRights(t *testing.T) {
	h := openTestHouse(t)
	var out, errs bytes.Buffer
	args := []string{"pci", "-nats", h.url, "-nkey", h.key(userShop)}
	alive, end := io.Pipe()
	defer end.Close()
	if code := run(t.Context(), args, alive, &out, &errs); code != 1 || !strings.Contains(errs.String(), "_INBOX_PCI") {
		t.Errorf("got exit code %d and %q, want 1 and the inbox", code, &errs)
	}
}

func openTestHouse(t *testing.T) *house {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	h, err := openHouse(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	return h
}

// The credentials of the card worker let it work on the list PCI, which TestProgram shows, and do nothing else.
func TestCardWorkerIsConfined(t *testing.T) {
	h := openTestHouse(t)
	shop, err := drover.Connect(t.Context(), &drover.Options{URL: h.url, NKeyFile: h.key(userShop)})
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	if _, err := place(t.Context(), shop, id, small); err != nil {
		t.Fatal(err)
	}

	t.Run("by Drover's own client", func(t *testing.T) {
		pci, err := connectPCI(t.Context(), h.url, h.key(userPCI))
		if err != nil {
			t.Fatal(err)
		}
		defer pci.Close()
		run := pci.Run(id, "")
		for name, try := range map[string]func() error{
			"history": func() error {
				for _, err := range run.History(t.Context(), drover.HistoryOptions{}) {
					return err
				}
				return nil
			},
			"describe": func() error { _, err := run.Describe(t.Context()); return err },
			"result":   func() error { return run.Result(t.Context(), nil) },
			"signal":   func() error { return drover.Signal(t.Context(), run, Approve, yes) },
			"cancel":   func() error { return pci.Run(id, "R").Cancel(t.Context(), "") },
			"start":    func() error { _, err := drover.Start(t.Context(), pci, Pay, Payment{}, nil); return err },
		} {
			if err := try(); !errors.Is(err, drover.ErrPermission) {
				t.Errorf("%s: got %v, want %v", name, err, drover.ErrPermission)
			}
		}
	})
	t.Run("by NATS", func(t *testing.T) { confinedByNATS(t, h) })

	if d, err := shop.Run(id, "").Describe(t.Context()); err != nil || d.Execution.Status != schemas.StatusOpen {
		t.Errorf("got %+v and %v, want an order as it was", d, err)
	}
}

// confinedByNATS tries what a worker in other hands would.
func confinedByNATS(t *testing.T, h *house) {
	key, err := nats.NkeyOptionFromSeed(h.key(userPCI))
	if err != nil {
		t.Fatal(err)
	}
	refusals := make(chan error, 100)
	nc, err := nats.Connect(h.url, key, nats.CustomInboxPrefix(pciInbox),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refusals <- err }))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	refused := func(subject string) {
		t.Helper()
		select {
		case err := <-refusals:
			if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), `"`+subject+`"`) {
				t.Errorf("%s: got %v, want %v", subject, err, nats.ErrPermissionViolation)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: got no refusal", subject)
		}
	}
	for _, subject := range []string{
		"$JS.API.CONSUMER.MSG.NEXT.drover-default-tasks-shop.workers", // another list
		"$JS.ACK.drover-default-tasks-shop.workers.1.1.1.1.0",
		"drover.default.in.0.order-1.act.shop",
		"drover.default.in.0.order-1.start", // an inbox, past the API
		"drover.default.signal.order-1.cancel",
		"drover.default.history.0.order-1.R", // a history, past everything
		"drover.default.outcome.0.order-1.shop",
		"drover.default.beat.0.order-1.shop",
		"$JS.API.STREAM.NAMES",
		"$JS.API.STREAM.MSG.GET.drover-default-history-0",
		"$JS.API.DIRECT.GET.drover-default-history-0",
		"$JS.API.CONSUMER.CREATE.drover-default-history-0",
		"$JS.API.CONSUMER.CREATE.drover-default-tasks-PCI", // a consumer of its own
		"$JS.API.STREAM.PURGE.drover-default-tasks-PCI",
	} {
		if err := nc.Publish(subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		refused(subject)
	}
	for _, subject := range []string{">", "drover.>", "_INBOX.>", "drover.default.decide.payment", "drover.default.control.*"} {
		if _, err := nc.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		refused(subject)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := nc.FlushWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-refusals:
		t.Errorf("got %v, want no other refusal", err)
	default:
	}
}
