package schedules

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// maxSchedule is how long a file with a schedule may be, in bytes.
const maxSchedule = 8 << 20

// scheduleFlags are what schedule create and schedule update take.
type scheduleFlags struct {
	file                   string
	cron, every, at        []string
	inWindow               periodFlags
	zone                   string
	from, until            instantFlag
	jitter, catchUp        cli.DurationFlag
	typ, version, id       string
	input, signalInput     cli.InputFlag
	signal, workflow       string
	overlap, note          string
	remaining              int64
	pauseOnFailure, paused bool
	tags                   []string
	attributes             map[string]string
	changed                func(name string) bool
}

// periodFlags are those of times in a window of a period.
type periodFlags struct {
	window, period string
	every          cli.DurationFlag
}

func (f *periodFlags) register(fs *pflag.FlagSet) {
	f.every.Some = true
	fs.StringVar(&f.window, "window", "", "once a period, in a window such as 02:00+1h")
	fs.StringVar(
		&f.period, "period", "",
		"of --window: hour, day, week, month, or a cron expression (default day)",
	)
	fs.Var(&f.every, "trigger-every", "how often it is tried in the window (default 5m)")
}

func (f *scheduleFlags) register(cmd *cobra.Command) {
	for _, d := range []*cli.DurationFlag{&f.jitter, &f.catchUp} {
		d.Some = true
	}
	fs := cmd.Flags()
	f.changed = fs.Changed
	fs.SortFlags = false
	fs.StringVarP(&f.file, "file", "f", "", "the schedule in YAML or JSON; - for standard input")
	fs.StringArrayVar(&f.cron, "cron", nil, `times such as "0 3 * * *"; may be repeated`)
	fs.StringArrayVar(&f.every, "every", nil, "times such as 5m, or 24h+3h; may be repeated")
	fs.StringArrayVar(
		&f.at, "at", nil, "an instant such as 2026-12-24T18:00:00+01:00; may be repeated",
	)
	f.inWindow.register(fs)
	fs.StringVar(&f.zone, "zone", "", "the time zone, such as Europe/Berlin (default UTC)")
	fs.Var(&f.from, "from", "no time before this instant")
	fs.Var(&f.until, "until", "no time from this instant on")
	fs.Var(&f.jitter, "jitter", "start each time later by less than this")
	fs.StringVar(&f.typ, "type", "", "type of the workflows to start")
	fs.StringVar(&f.version, "type-version", "", "version of the type")
	fs.StringVar(&f.id, "id", "",
		"their workflow id (default the schedule's, a slash and the time)")
	f.input.Register(cmd, "input of the workflows, or of the signal if there is no --type")
	fs.StringVar(
		&f.signal,
		"signal",
		"",
		"name of a signal: to --workflow, or with --type and --id to start with",
	)
	fs.StringVar(&f.workflow, "workflow", "", "the workflow that is signaled")
	f.signalInput.Name = cli.SignalInput
	f.signalInput.RegisterJSON(cmd, "input of the signal of a start")
	fs.StringArrayVar(&f.tags, "tag", nil, "a tag of the workflows; may be repeated")
	fs.Var(
		cli.AttributesFlag{To: &f.attributes},
		"attribute",
		"an attribute of the workflows; may be repeated",
	)
	fs.StringVar(
		&f.overlap, "overlap", "",
		"while an earlier run is open: "+strings.Join(cli.OverlapWords, ", ")+" (default skip)",
	)
	fs.Var(&f.catchUp, "catch-up", "how late a time may be that was missed (default one year)")
	fs.BoolVar(&f.pauseOnFailure, "pause-on-failure", false, "pause when a run fails or times out")
	fs.Int64Var(&f.remaining, "remaining", 0, "rest after so many times (default no limit)")
	fs.BoolVar(&f.paused, "paused", false, "it does nothing until it is resumed")
	fs.StringVar(&f.note, "note", "", "what it is for, or why it is paused")
}

// given tells whether any of the flags is.
func (f *scheduleFlags) given(names ...string) bool {
	for _, name := range names {
		if f.changed(name) {
			return true
		}
	}
	return false
}

var (
	timeFlags   = []string{"cron", "every", "at", "from", "until", "jitter"}
	windowFlags = []string{"window", "period", "trigger-every"}
	actionFlags = []string{
		"type", "type-version", "id", "input", "signal", "workflow", cli.SignalInput, "tag",
		"attribute",
	}
	otherFlags = []string{
		"zone", "overlap", "catch-up", "pause-on-failure", "remaining", "paused", "note",
	}
)

// apply changes a schedule as the flags say.
func (f *scheduleFlags) apply(cmd *cobra.Command, stdin io.Reader, s *ops.Schedule) error {
	if f.file != "" {
		if err := f.read(cmd, stdin, s); err != nil {
			return err
		}
	}
	for _, change := range []func(*ops.Schedule) error{f.when, f.rest} {
		if err := change(s); err != nil {
			return cli.Usage(cmd, err)
		}
	}
	return f.action(cmd, stdin, s)
}

// read replaces a schedule by the one in the file.
func (f *scheduleFlags) read(cmd *cobra.Command, stdin io.Reader, s *ops.Schedule) error {
	name, from := f.file, stdin
	if f.file == "-" {
		name = "standard input"
	} else {
		file, err := os.Open(f.file)
		if err != nil {
			return cli.Usage(cmd, fmt.Errorf("--file: %w", err))
		}
		defer file.Close()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, maxSchedule+1))
	if err == nil && len(text) > maxSchedule {
		err = fmt.Errorf("it has more than %s", cli.Size(maxSchedule))
	}
	if err != nil {
		return cli.Usage(cmd, fmt.Errorf("--file %s: %w", name, err))
	}
	read := ops.Schedule{}
	if err := cli.ReadYAML(text, &read); err != nil {
		return cli.Usage(cmd, fmt.Errorf("%s: %w", name, err))
	}
	if id := cmp.Or(read.ID, s.ID); id != s.ID {
		return cli.Usage(cmd, fmt.Errorf(
			"%s is about the schedule %q, and the command about %q: leave its id out, or name it",
			name,
			id,
			s.ID,
		))
	}
	read.ID = s.ID
	*s = read
	return nil
}

// when changes the times, or the window.
func (f *scheduleFlags) when(s *ops.Schedule) error {
	times, window := f.given(timeFlags...), f.given(windowFlags...)
	switch {
	case times && window:
		return errors.New("--window is given with --cron, --every, --at, --from, --until or " +
			"--jitter: a schedule has times or a window")
	case times:
		if s.Window = nil; s.Times == nil {
			s.Times = &ops.ScheduleTimes{}
		}
	case window:
		if s.Times = nil; s.Window == nil {
			s.Window = &ops.ScheduleWindow{}
		}
	}
	if window {
		if err := f.inWindow.apply(s.Window, f.changed); err != nil {
			return err
		}
	}
	switch {
	case !f.changed("zone"):
	case s.Window != nil:
		s.Window.TimeZone = f.zone
	case s.Times != nil:
		s.Times.TimeZone = f.zone
	default:
		return errors.New(
			"--zone is given without times: say when, by --cron, --every, --at or --window")
	}
	if !times {
		return nil
	}
	return f.inTimes(s.Times)
}

func (f *scheduleFlags) inTimes(t *ops.ScheduleTimes) error {
	if f.changed("cron") {
		t.Cron = f.cron
	}
	if f.changed("every") {
		t.Every = nil
		for _, s := range f.every {
			interval, err := cli.ParseInterval(s)
			if err != nil {
				return fmt.Errorf("--every is %q: %w", s, err)
			}
			t.Every = append(t.Every, interval)
		}
	}
	if f.changed("at") {
		t.At = nil
		for _, s := range f.at {
			var at instantFlag
			if err := at.Set(s); err != nil {
				return fmt.Errorf("--at is %q: %w", s, err)
			}
			t.At = append(t.At, schemas.At(at.value))
		}
	}
	if f.changed("from") {
		t.From = schemas.At(f.from.value)
	}
	if f.changed("until") {
		t.Until = schemas.At(f.until.value)
	}
	if f.changed("jitter") {
		t.Jitter = schemas.Duration(f.jitter.Value)
	}
	return nil
}

func (f *periodFlags) apply(w *ops.ScheduleWindow, changed func(name string) bool) error {
	if changed("window") {
		opens, length, ok := strings.Cut(f.window, "+")
		d := cli.DurationFlag{Some: true}
		if !ok || d.Set(length) != nil {
			return fmt.Errorf(
				"--window is %q: want when it opens and how long it is open, such as "+
					"02:00+1h, :15+10m for each hour, or +1h with a cron expression as --period",
				f.window)
		}
		w.Opens, w.Length = opens, schemas.Duration(d.Value)
	}
	if changed("period") {
		w.Period = f.period
	}
	if changed("trigger-every") {
		w.Every = schemas.Duration(f.every.Value)
	}
	return nil
}

// rest changes what is neither times nor action.
func (f *scheduleFlags) rest(s *ops.Schedule) error {
	if err := ops.OverlapPolicy(f.overlap).Validate("--overlap"); err != nil {
		return err
	}
	if f.changed("overlap") {
		s.Overlap = ops.OverlapPolicy(f.overlap)
	}
	if f.changed("catch-up") {
		s.CatchUp = schemas.Duration(f.catchUp.Value)
	}
	if f.changed("pause-on-failure") {
		s.PauseOnFailure = f.pauseOnFailure
	}
	if f.changed("remaining") {
		s.Remaining = &f.remaining
	}
	if f.changed("paused") {
		s.Paused = f.paused
	}
	if f.changed("note") {
		s.Note = f.note
	}
	return nil
}

// action changes what is done for each slot.
func (f *scheduleFlags) action(cmd *cobra.Command, stdin io.Reader, s *ops.Schedule) error {
	if !f.given(actionFlags...) {
		return nil
	}
	if f.given("input", cli.SignalInput) && f.readers() > 1 {
		return cli.Usage(
			cmd,
			errors.New(
				"only one of --file, --input and --signal-input reads standard input: name a file"),
		)
	}
	input, err := f.input.Read(cmd, stdin)
	if err != nil {
		return err
	}
	signal, err := f.signalInput.Read(cmd, stdin)
	if err != nil {
		return err
	}
	if f.changed("workflow") || s.Action.Signal != nil && !f.changed("type") {
		if f.given("type", "type-version", "id", "tag", "attribute", cli.SignalInput) {
			return cli.Usage(cmd, errors.New("--workflow signals a workflow that is open: "+
				"leave it out, or --type, --type-version, --id, --tag, --attribute and --signal-input"))
		}
		return usageOf(cmd, f.signals(&s.Action, input))
	}
	return usageOf(cmd, f.starts(&s.Action, input, signal))
}

// readers is how many flags read standard input.
func (f *scheduleFlags) readers() (n int) {
	for _, from := range []string{f.file, f.input.Text, f.signalInput.Text} {
		if from == "-" {
			n++
		}
	}
	return n
}

// usageOf is usage, and nil for nil.
func usageOf(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	return cli.Usage(cmd, err)
}

func (f *scheduleFlags) signals(a *ops.ScheduleAction, input schemas.Payload) error {
	if a.Start = nil; a.Signal == nil {
		a.Signal = &schemas.SignalRequest{}
	}
	if f.changed("workflow") {
		a.Signal.WorkflowID = f.workflow
	}
	if f.changed("signal") {
		a.Signal.Name = f.signal
	}
	if f.changed("input") {
		a.Signal.Input = input
	}
	if a.Signal.Name == "" {
		return errors.New("--signal is missing: say which signal --workflow gets")
	}
	return nil
}

func (f *scheduleFlags) starts(a *ops.ScheduleAction, input, signal schemas.Payload) error {
	if a.Signal = nil; a.Start == nil {
		a.Start = &schemas.StartRequest{}
	}
	start := a.Start
	if f.changed("type") {
		start.Type = f.typ
	}
	if f.changed("type-version") {
		start.TypeVersion = f.version
	}
	if f.changed("id") {
		start.WorkflowID = f.id
	}
	if f.changed("input") {
		start.Input = input
	}
	if f.changed("tag") {
		start.TagList = f.tags
	}
	if f.changed("attribute") {
		start.Attributes = f.attributes
	}
	if f.given("signal", cli.SignalInput) && start.Signal == nil {
		start.Signal = &schemas.StartSignal{}
	}
	if f.changed("signal") {
		start.Signal.Name = f.signal
	}
	if f.changed(cli.SignalInput) {
		start.Signal.Input = signal
	}
	switch {
	case start.Type == "" && f.changed("signal"):
		return errors.New(
			"--signal needs --workflow ID, or --type and --id of what it starts if nothing is open",
		)
	case start.Type == "":
		return errors.New(
			"--type is missing: say which workflows are started, or --signal and --workflow",
		)
	case start.Signal != nil && start.Signal.Name == "":
		return errors.New("--signal-input needs --signal NAME")
	}
	return nil
}

// instantFlag is an instant on the command line, with its offset.
type instantFlag struct{ value time.Time }

// Set implements [pflag.Value].
func (t *instantFlag) Set(s string) error {
	v, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return errors.New(
			"want an instant such as 2026-12-24T18:00:00Z or 2026-12-24T18:00:00+01:00")
	}
	t.value = v
	return nil
}

// String implements [pflag.Value].
func (t *instantFlag) String() string {
	if t.value.IsZero() {
		return ""
	}
	return t.value.Format(time.RFC3339Nano)
}

// Type implements [pflag.Value].
func (t *instantFlag) Type() string { return "instant" }

// scheduleFields are the flags for the fields that a refusal names. Longer names come first.
var scheduleFields = inRequest(
	"schedule.",
	"times.timeZone",
	"--zone",
	"times.cron",
	"--cron",
	"times.every",
	"--every",
	"times.at",
	"--at",
	"times.from",
	"--from",
	"times.until",
	"--until",
	"times.jitter",
	"--jitter",
	"window.timeZone",
	"--zone",
	"window.every",
	"--trigger-every",
	"window.period",
	"--period",
	"window.opens",
	"--window",
	"window.length",
	"--window",
	"action.start.typeVersion",
	"--type-version",
	"action.start.type",
	"--type",
	"action.start.workflowId",
	"--id",
	"action.start.input",
	"--input",
	"action.start.signal.name",
	"--signal",
	"action.start.signal.input",
	"--signal-input",
	"action.signal.workflowId",
	"--workflow",
	"action.signal.name",
	"--signal",
	"action.signal.input",
	"--input",
	"pauseOnFailure",
	"--pause-on-failure",
	"catchUp",
	"--catch-up",
)

// refusedSchedule names in a refusal the flags that the command line has, in the place of fields.
func (f *scheduleFlags) refusedSchedule(err error) error {
	if f.file != "" {
		return err
	}
	return cli.RefusedIn(scheduleFields, err)
}

// inRequest replaces fields by flags, also where the name of a request's part stands before them.
func inRequest(part string, pairs ...string) *strings.Replacer {
	var all []string
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, part+pairs[i], pairs[i+1], pairs[i], pairs[i+1])
	}
	return strings.NewReplacer(all...)
}
