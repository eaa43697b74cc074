package kit

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover"
)

// serverPatience is how long a NATS server may take until it listens.
const serverPatience = 2 * time.Minute

// ServeNATS is a role: a NATS server that knows nothing of Drover, at an address of loopback with a
// port, with its store in dir. It prints "ready" when it is. change may be nil; it gets the options
// before the server does.
func ServeNATS(ctx context.Context, address, dir string, change func(*server.Options) error) error {
	at, err := url.Parse(address)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		return err
	}
	o := &server.Options{
		Host:      "127.0.0.1",
		Port:      port,
		JetStream: true,
		StoreDir:  dir,
		NoSigs:    true,
	}
	if change != nil {
		if err := change(o); err != nil {
			return err
		}
	}
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	go s.Start()
	if !s.ReadyForConnections(serverPatience) {
		return errors.New("the server does not get ready")
	}
	fmt.Println("ready")
	<-ctx.Done()
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

// Connect connects a role to Drover, whose server may be down too: whoever starts a worker does not
// wait for it. It logs to standard error.
func Connect(ctx context.Context, o drover.Options) (*drover.Client, error) {
	log := logrus.New()
	log.SetOutput(os.Stderr)
	o.Logger = log
	for {
		c, err := drover.Connect(ctx, &o)
		if !errors.Is(err, drover.ErrUnavailable) || ctx.Err() != nil {
			return c, err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}
