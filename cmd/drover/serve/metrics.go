package serve

import (
	"context"
	"errors"
	"fmt"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/ops/metrics"
	"github.com/droverhq/drover/server"
)

// metricsFlags say where Prometheus reads the metrics.
type metricsFlags struct {
	address string
	public  bool
}

func (f *metricsFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.address, "metrics", "",
		"address of http://ADDRESS/metrics for Prometheus, such as 127.0.0.1:9464 (default none)")
	fs.BoolVar(&f.public, "metrics-public", false,
		"allow an address for --metrics that is not on loopback: whoever reaches it reads them")
}

// shown is where metrics are shown; the zero value is nowhere.
type shown struct{ *metrics.Listener }

// listen takes the address, so that one that is taken is said before anything begins.
func (f *metricsFlags) listen(cmd *cobra.Command, o *server.Options) (shown, error) {
	if f.address == "" {
		if f.public {
			return shown{}, cli.Usage(cmd,
				errors.New("--metrics-public says something about --metrics, which is missing"))
		}
		return shown{}, nil
	}
	l, err := metrics.Listen(f.address, f.public)
	switch {
	case errors.Is(err, metrics.ErrPublic):
		return shown{}, cli.Usage(cmd, fmt.Errorf(
			"--metrics %w: whoever reaches it could read the metrics; use 127.0.0.1, or add "+
				"--metrics-public", err))
	case err != nil:
		return shown{}, fmt.Errorf("--metrics: %w: use an address such as 127.0.0.1:9464", err)
	}
	o.Metrics = l
	return shown{l}, nil
}

// serve answers until ctx ends.
func (s shown) serve(ctx context.Context, log logrus.FieldLogger) {
	if s.Listener == nil {
		return
	}
	log.WithField("url", "http://"+s.Addr()+"/metrics").Info("metrics are shown")
	if err := s.Serve(ctx); err != nil {
		log.WithError(err).Error("metrics are not shown any more")
	}
}

// Close gives the address back.
func (s shown) Close() {
	if s.Listener != nil {
		s.Listener.Close()
	}
}
