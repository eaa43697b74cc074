package schedules

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/internal/zones"
	"github.com/droverhq/drover/schemas/ops"
)

func OnceCommand(a *cli.App) *cobra.Command {
	var o drover.OnceOptions
	cmd := &cobra.Command{
		Use:   "once NAME [per PERIOD] [in ZONE]",
		Short: "Succeed for the first caller of a period only",
		Long: `Tell whether this is the first of a period to ask for NAME. Of all that ask,
exactly one is the first, wherever they run. The exit code is 0 for it and 6
for the others.

PERIOD is hour, day, week or month (default day), or a cron expression whose
times begin periods. ZONE is where days begin, such as Europe/Berlin (default
UTC). Whoever asks again with the same --caller gets the same answer: after an
accident a script may ask once more.`,
		Example: `  if drover once report per day in Europe/Berlin; then make-the-report; fi
  drover once backup per "0 22 * * SUN" --caller "$HOSTNAME-$JOB_ID"`,
		Args: func(_ *cobra.Command, args []string) error { return onceWords(args, &o) },
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				r, err := c.AskOnce(ctx, args[0], o)
				if err != nil {
					return err
				}
				if err := onceSaid(a, r, o.TimeZone); err != nil {
					return err
				}
				if !r.First {
					return cli.ErrNotFirst
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(
		&o.Caller, "caller", "",
		"who asks: a repeat with the same one gets the same answer (default a new one)",
	)
	return cmd
}

// onceWords reads NAME [per PERIOD] [in ZONE].
func onceWords(args []string, o *drover.OnceOptions) error {
	if len(args) == 0 {
		return errors.New("NAME is missing")
	}
	if args[0] == "" {
		return errors.New("NAME is empty")
	}
	for rest := args[1:]; len(rest) > 0; rest = rest[2:] {
		to := map[string]*string{"per": &o.Period, "in": &o.TimeZone}[rest[0]]
		switch {
		case to == nil:
			return fmt.Errorf("argument %q is too much: say NAME per PERIOD in ZONE", rest[0])
		case len(rest) == 1 || rest[1] == "":
			what := map[string]string{"per": "PERIOD", "in": "ZONE"}[rest[0]]
			return fmt.Errorf("%s is missing after %s", what, rest[0])
		case *to != "":
			return fmt.Errorf("%q stands twice: leave one out", rest[0])
		}
		*to = rest[1]
	}
	return nil
}

func onceSaid(a *cli.App, r *ops.OnceResponse, zone string) error {
	if r.V = 0; a.JSON {
		return a.Document(r)
	}
	at, err := zones.Load(zone)
	if err != nil {
		return err
	}
	span := ""
	if r.Begins != 0 && r.Ends != 0 {
		span = ": " + local(r.Begins, at) + " to " + local(r.Ends, at)
	}
	if r.First {
		return a.Say("first of %s%s", cli.Word(r.Period, cli.Whole), span)
	}
	by := ""
	if r.By != nil {
		by = "\nthat was " + strings.TrimSpace(cli.Sentence(r.By.Identity)+" "+local(r.By.At, at))
	}
	return a.Say("not the first of %s%s%s", cli.Word(r.Period, cli.Whole), span, by)
}
