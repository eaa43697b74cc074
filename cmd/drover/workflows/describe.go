package workflows

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/internal/rootcause"
	"github.com/droverhq/drover/schemas"
)

// treated says what was done about the children of a run that has ended.
var treated = map[schemas.ChildPolicy]string{
	schemas.ChildTerminate: "terminated with it", schemas.ChildRequestCancel: "asked to cancel",
	schemas.ChildAbandon: "left to itself",
}

func DescribeCommand(a *cli.App) *cobra.Command {
	var runID string
	cmd := &cobra.Command{
		Use:   "describe ID",
		Short: "Show a workflow: status, what is open, deadlines, owner",
		Args:  cli.ArgNames("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				d, err := c.Run(args[0], runID).Describe(ctx)
				if err != nil {
					return err
				}
				end := endOf(ctx, c, d)
				if a.JSON {
					d.V = 0
					doc := describeDocument{DescribeResponse: d}
					if end != nil {
						doc.Reason, doc.Cause, doc.Details = end.Reason, rootcause.Of(end.Details),
							end.Details
					}
					return a.Document(doc)
				}
				_, err = a.Stdout.Write(DescribeText(d, end, time.Now()))
				return err
			})
		},
	}
	cli.RunFlag(cmd, &runID)
	return cmd
}

// describeDocument is what describe prints with --json: the answer, and why the run did not
// complete.
type describeDocument struct {
	*schemas.DescribeResponse
	Reason  string          `json:"reason,omitempty"`
	Cause   string          `json:"cause,omitempty"` // of a flow: the innermost failure
	Details schemas.Payload `json:"details,omitempty"`
}

// endPatience bounds how long describe looks for why a run did not complete: it does without.
const endPatience = 5 * time.Second

// endOf tells how a run ended that did not complete; nil for others, and if nobody says.
func endOf(ctx context.Context, c *drover.Client, d *schemas.DescribeResponse) *drover.Outcome {
	s := d.Execution.Status
	if !s.Closed() || s == schemas.StatusCompleted || s == schemas.StatusContinuedAsNew {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	end, err := c.Run(d.Execution.WorkflowID, d.Execution.Run).Wait(ctx)
	if err != nil {
		return nil
	}
	return end
}

// DescribeText lays an execution out for people. end is that of a run that did not complete, or
// nil.
func DescribeText(d *schemas.DescribeResponse, end *drover.Outcome, now time.Time) []byte {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 2, 8, 2, ' ', 0)
	field := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	e := d.Execution
	field("workflow", "%s", cli.Word(e.WorkflowID, 256))
	field("run", "%s", cli.Word(e.Run, 64))
	field("type", "%s", strings.TrimSpace(cli.Word(e.Type, 256)+" "+e.TypeVersion))
	field("status", "%s", statusLine(d))
	var lines []string // of the details
	if end != nil {
		if end.Reason != "" {
			field("reason", "%s", cli.Sentence(end.Reason))
		}
		if cause := rootcause.Of(end.Details); cause != "" {
			field("cause", "%s", cause)
		}
		if len(end.Details) > 0 {
			p := valuePart("", end.Details)
			if lines = p.lines; lines == nil {
				field("details", "%s", cli.Cut(p.value, mostDetails))
			}
		}
	} else if d.PausedDetails != "" {
		_, lines = textLines(d.PausedDetails, cli.Sentence)
	}
	if d.Soft {
		field("soft", "%s", SoftNote)
	}
	field("started", "%s%s", cli.When(e.StartedAt), begunBy(e.StartMode))
	if e.ClosedAt != 0 {
		field("closed", "%s, took %s", cli.When(e.ClosedAt), cli.Span(e.ClosedAt.Sub(e.StartedAt)))
	} else {
		field("runs for", "%s", cli.Span(now.Sub(e.StartedAt.Time())))
	}
	if d.Timeout != 0 && e.ClosedAt == 0 {
		field("times out", "%s", cli.When(d.Timeout))
	}
	if c := d.Started.Continuation; c != nil && e.ClosedAt == 0 {
		field("continues", "%s", policyWords(c))
	}
	if d.Held != nil && e.ClosedAt == 0 {
		field("held", "%s", heldLine(d.Held))
	}
	field("events", "%d", e.Events)
	field("partition", "%d%s", d.Partition, ownedBy(d.Owner))
	if d.Decision != "" {
		field("decision", "%s%s", d.Decision, attempt(d.DeciderAttempt))
	}
	if d.Alarm != 0 {
		field("next alarm", "%s", cli.When(d.Alarm))
	}
	if d.RequestIDsSince != 0 {
		field("ids known",
			"since %s; a signal or request that is repeated later than that may count twice",
			cli.When(d.RequestIDsSince))
	}
	if len(e.Tags) > 0 {
		field("tags", "%s", words(e.Tags))
	}
	for _, k := range sortedKeys(e.Attributes) {
		field("attribute", "%s=%s", cli.Word(k, 64), cli.Word(e.Attributes[k], 200))
	}
	if len(d.Input) > 0 {
		field("input", "%s", Excerpt(d.Input))
	}
	if len(d.LatestContext) > 0 {
		field("context", "%s", Excerpt(d.LatestContext))
	}
	t.Flush()
	if len(lines) > 0 {
		fmt.Fprintf(&b, "\ndetails\n%s", indented(lines))
	}
	describeOpen(&b, d)
	return b.Bytes()
}

// mostDetails is how much of the details is shown in a line.
const mostDetails = 400

// indented is text below a heading.
func indented(lines []string) string { return "  " + strings.Join(lines, "\n  ") + "\n" }

// describeOpen adds the tables of what is not closed yet.
func describeOpen(b *bytes.Buffer, d *schemas.DescribeResponse) {
	t := tabwriter.NewWriter(b, 2, 8, 2, ' ', 0)
	if len(d.Activities) > 0 {
		fmt.Fprint(b, "\nopen activities\n")
		fmt.Fprintln(t, "  ID\tTYPE\tLIST\tSTATE\tSINCE\tDEADLINE")
		for _, a := range d.Activities {
			state, since := "scheduled", a.ScheduledAt
			if a.StartedAt != 0 {
				state, since = "started"+attempt(a.Attempt)+by(a.Worker), a.StartedAt
			}
			if a.CancelRequested {
				state += ", cancel requested"
			}
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%s\n", cli.Word(a.ActivityID, 60),
				cli.Word(a.Type, 60), a.List, state, cli.When(since), cli.When(a.Deadline))
		}
		t.Flush()
	}
	if len(d.Timers) > 0 {
		fmt.Fprint(b, "\nopen timers\n")
		fmt.Fprintln(t, "  ID\tDUE")
		for _, timer := range d.Timers {
			fmt.Fprintf(t, "  %s\t%s\n", cli.Word(timer.TimerID, 60), cli.When(timer.Due))
		}
		t.Flush()
	}
	if len(d.Children) > 0 {
		if d.Children[0].Policy == "" {
			fmt.Fprint(b, "\nopen children\n")
		} else {
			fmt.Fprint(b, "\nchildren that were open when it ended\n")
		}
		fmt.Fprintln(t, "  ID\tRUN\tTYPE\tSTATE\tSCHEDULED")
		for _, c := range d.Children {
			state := map[bool]string{true: "started", false: "scheduled"}[c.Started]
			state = cmp.Or(treated[c.Policy], state)
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", cli.Word(c.WorkflowID, 60),
				cli.Word(c.Run, 64), cli.Word(c.Type, 60), state, cli.When(c.ScheduledAt))
		}
		t.Flush()
	}
	describeLocks(b, d)
	if len(d.ReplayPoints) > 0 {
		fmt.Fprint(b, "\nreplay points\n")
		fmt.Fprintln(t, "  NAME\tEVENT\tSET")
		for _, p := range d.ReplayPoints {
			fmt.Fprintf(t, "  %s\t%d\t%s\n", cli.Word(p.Name, 60), p.EventID, cli.When(p.Time))
		}
		t.Flush()
	}
	describeAttempts(b, d)
}

// describeAttempts lists the runs that repeat the same run, or are it.
func describeAttempts(b *bytes.Buffer, d *schemas.DescribeResponse) {
	if len(d.Attempts) == 0 {
		return
	}
	t := tabwriter.NewWriter(b, 2, 8, 2, ' ', 0)
	fmt.Fprint(b, "\nattempts\n")
	fmt.Fprintln(t, "  RUN\tREPLAYS\tFROM\tBY\tSTARTED\tCLOSED\tSTATUS\tREASON")
	for _, a := range d.Attempts {
		replays, from, who, why := "-", "initial run", "-", "-"
		if r := a.Replays; r != nil {
			replays, from = cli.Word(r.Run, 64), cli.Word(r.From, 60)
			if r.Force {
				from += ", forced"
			}
			if r.Identity != "" {
				who = cli.Word(r.Identity, 60)
			}
			if r.Reason != "" {
				why = cli.Sentence(r.Reason)
			}
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cli.Word(a.Run, 64), replays, from,
			who, cli.When(a.StartedAt), cli.When(a.ClosedAt), a.Status, why)
	}
	t.Flush()
}

func describeLocks(b *bytes.Buffer, d *schemas.DescribeResponse) {
	if len(d.Locks) == 0 {
		return
	}
	t := tabwriter.NewWriter(b, 2, 8, 2, ' ', 0)
	fmt.Fprint(b, "\nlocks\n")
	fmt.Fprintln(t, "  LOCK\tSCOPE\tSTATE\tSINCE\tLEASE UNTIL")
	for _, l := range d.Locks {
		scope, state := "-", "waits for it"
		if l.Scope != "" {
			scope = cli.Word(l.Scope, 60)
		}
		switch {
		case l.Holder != nil:
			state = "entered by " + cli.Word(l.Holder.WorkflowID, 60)
		case l.Fence != 0:
			state = fmt.Sprintf("holds it, fence %d", l.Fence)
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", cli.Word(l.Lock, 60), scope, state,
			cli.When(l.Since), cli.When(l.Expires))
	}
	t.Flush()
}

func statusLine(d *schemas.DescribeResponse) string {
	s := string(d.Execution.Status)
	if d.CancelRequested {
		s += ", cancel requested"
	}
	if d.EventsLeft > 0 {
		s += fmt.Sprintf(", %d events before it is terminated", d.EventsLeft)
	}
	if d.PausedCause != "" {
		s += ": " + cli.Sentence(d.PausedCause)
	}
	if d.PausedDetails != "" {
		first, _ := textLines(d.PausedDetails, cli.Sentence)
		s += ": " + cli.Cut(first, mostDetails)
	}
	return s
}

// begunBy tells what began a run; nothing of one that somebody has started by hand, as most are.
func begunBy(mode schemas.StartMode) string {
	if mode == "" || mode == schemas.ModeManual {
		return ""
	}
	if slices.Contains(schemas.StartModes(), mode) { // one of them has spaces
		return ", mode " + string(mode)
	}
	return ", mode " + cli.Word(string(mode), 64)
}

// policyWords says when a run is asked to continue as new.
func policyWords(c *schemas.ContinuationPolicy) string {
	var limits []string
	if c.After > 0 {
		limits = append(limits, "after "+c.After.String())
	}
	if c.Events > 0 {
		limits = append(limits, fmt.Sprintf("after %d events", c.Events))
	}
	if len(limits) == 0 {
		return "as new when its node is recycled"
	}
	return "as new " + strings.Join(limits, " or ")
}

// heldLine says who keeps a run from being asked to continue as new, and why.
func heldLine(h *schemas.ContinuationHeld) string {
	s := "not asked to continue as new"
	if h.Identity != "" {
		s += ", by " + cli.Word(h.Identity, 100)
	}
	if h.Reason != "" {
		s += ": " + cli.Sentence(h.Reason)
	}
	return s
}

func ownedBy(owner string) string {
	if owner == "" {
		return ", owned by nobody"
	}
	return ", owned by " + cli.Word(owner, 100)
}

func attempt(n int) string {
	if n <= 1 {
		return ""
	}
	return fmt.Sprintf(", attempt %d", n)
}

func by(worker string) string {
	if worker == "" {
		return ""
	}
	return " by " + cli.Word(worker, 100)
}
