package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/server"
)

const (
	// CompleteTime is how long a shell may be kept waiting.
	CompleteTime = 2 * time.Second
	// completeMost is how many executions are looked at.
	completeMost = 200
)

// candidates yields what may stand at a place of the command line and begins with prefix, each with
// a few words about it. It ends when ctx does, with what it has until then.
type candidates func(ctx context.Context, c *drover.Client, prefix string, yield func(name, about string))

// completions adds to the commands what the shell can complete by asking the server. Whatever goes
// wrong, the shell gets nothing, and no word of it: this runs between two key strokes.
func (a *App) completions(root *cobra.Command) {
	open, all := workflowIDs(schemas.StatusOpen), workflowIDs("")
	for path, first := range map[string]candidates{
		"signal": open, "cancel": open, "terminate": open, "pause": open, "hold": open,
		"release": open, "resume": workflowIDs(schemas.StatusPaused), "describe": all,
		"history": all, "result": all, "why": all, "replay": workflowIDs(schemas.StatusClosed),
		"start": workflowTypes, "flow show": flowNames, "namespace describe": namespaceNames,
		"namespace delete": namespaceNames, "schedule show": scheduleIDs,
		"schedule update": scheduleIDs, "schedule pause": scheduleIDs,
		"schedule resume": scheduleIDs, "schedule trigger": scheduleIDs,
		"schedule backfill": scheduleIDs, "schedule delete": scheduleIDs,
		"always-on show": alwaysIDs, "always-on stop": alwaysIDs, "always-on start": alwaysIDs,
		"always-on remove": alwaysIDs, "drain": nodeWords, "node ack": nodeWords,
		"node remove": nodeWords,
	} {
		if cmd := Find(root, path); cmd != nil && cmd.ValidArgsFunction == nil {
			cmd.ValidArgsFunction = a.complete(1, first)
		}
	}
	for _, verb := range []string{"register", "deprecate", "undeprecate", "delete", "describe"} {
		if cmd := Find(root, "type "+verb); cmd != nil && cmd.ValidArgsFunction == nil {
			cmd.ValidArgsFunction = a.completeType
		}
	}
	a.completeFlags(root, map[string]cobra.CompletionFunc{
		"namespace": a.complete(0, namespaceNames),
		"list":      a.complete(0, taskLists),
		"lists":     a.complete(0, taskLists),
		"id":        a.complete(0, all),
		"parent":    a.complete(0, all),
		"output":    oneOf(func() []string { return outputs }),
		"context":   oneOf(knownContexts),
		"log-level": oneOf(func() []string { return []string{"error", "warn", "info", "debug"} }),
		"status":    oneOf(statusWords),
		"overlap":   oneOf(func() []string { return OverlapWords }),
		"period":    oneOf(func() []string { return []string{"hour", "day", "week", "month"} }),
		"restart":   oneOf(restartWords),
		"workflow":  a.complete(0, open),
		"after-crash": oneOf(
			func() []string { return []string{server.AfterCrashRecover, server.AfterCrashHalt} }),
	})
	root.InitDefaultHelpCmd()
	if cmd := Find(root, "help"); cmd != nil {
		cmd.Args = helpArgs // cobra shows the help of as much as it knows, and calls it a success
	}
	root.InitDefaultCompletionCmd()
	if cmd := Find(root, "completion"); cmd != nil {
		// Cobra's own prints its help for an unknown shell and calls it a success.
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(_ *cobra.Command, args []string) error {
			a.Running = false
			if len(args) == 0 {
				return fmt.Errorf("a shell is missing: use bash, zsh, fish or powershell")
			}
			return fmt.Errorf("there is no completion for %q: use bash, zsh, fish or powershell",
				args[0])
		}
	}
}

// helpArgs are the words of a command.
func helpArgs(cmd *cobra.Command, args []string) error {
	known, rest, err := cmd.Root().Find(args)
	if err != nil {
		return err
	}
	if len(rest) == 0 {
		return nil
	}
	return NoCommand(known, rest[0])
}

// oneOf completes words that need no server.
func oneOf(words func() []string) cobra.CompletionFunc {
	return func(
		_ *cobra.Command, _ []string, prefix string,
	) (found []cobra.Completion, _ cobra.ShellCompDirective) {
		for _, w := range words() {
			if strings.HasPrefix(w, prefix) {
				found = append(found, w)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlags completes the flags of these names in every command that has them and does not know
// better.
func (a *App) completeFlags(cmd *cobra.Command, by map[string]cobra.CompletionFunc) {
	for name, fn := range by {
		if cmd.Flags().Lookup(name) == nil && cmd.PersistentFlags().Lookup(name) == nil {
			continue
		}
		if cmd.Name() == "start" && name == "id" {
			continue // a new one
		}
		// it fails only if the command has brought its own
		_ = cmd.RegisterFlagCompletionFunc(name, fn)
	}
	for _, child := range cmd.Commands() {
		a.completeFlags(child, by)
	}
}

// Find returns the command at a path of names, nil if there is none.
func Find(root *cobra.Command, path string) *cobra.Command {
	cmd := root
	for name := range strings.FieldsSeq(path) {
		i := slices.IndexFunc(cmd.Commands(),
			func(c *cobra.Command) bool { return c.Name() == name })
		if i < 0 {
			return nil
		}
		cmd = cmd.Commands()[i]
	}
	return cmd
}

// complete makes a function for the first most arguments, or for a flag if most is 0.
func (a *App) complete(most int, what candidates) cobra.CompletionFunc {
	return func(
		cmd *cobra.Command, args []string, prefix string,
	) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), CompleteTime)
		defer cancel()
		quiet := *a
		quiet.Stderr = io.Discard
		c, err := quiet.Connect(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		var found []cobra.Completion
		seen := map[string]bool{}
		what(ctx, c, prefix, func(name, about string) {
			if strings.HasPrefix(name, prefix) && harmless(name) && !seen[name] {
				seen[name] = true
				found = append(found, cobra.CompletionWithDesc(name, about))
			}
		})
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// harmless tells whether a shell takes a word as it is. An id may hold anything, and the completion
// of some shells would put it on the command line without quotes.
func harmless(s string) bool {
	return !strings.HasPrefix(s, "-") && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.:@+%/,", r)
	})
}

func workflowIDs(status schemas.Status) candidates {
	return func(
		ctx context.Context, c *drover.Client, prefix string, yield func(name, about string),
	) {
		for e, err := range c.List(ctx, drover.ListOptions{
			Status: status, Prefix: prefix, TopLevel: !strings.Contains(prefix, ":"),
			Limit: completeMost,
		}) {
			if err != nil {
				return
			}
			yield(e.WorkflowID, about(e.Type+" "+string(e.Status)))
		}
	}
}

// completeType completes KIND and NAME.
func (a *App) completeType(
	cmd *cobra.Command, args []string, prefix string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return oneOf(
			func() []string { return []string{string(schemas.WorkflowKind), string(schemas.ActivityKind)} },
		)(
			cmd,
			args,
			prefix,
		)
	case 1:
		return a.complete(2, registered(schemas.TypeKind(args[0])))(cmd, args, prefix)
	default:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

func registered(kind schemas.TypeKind) candidates {
	return func(
		ctx context.Context, c *drover.Client, prefix string, yield func(name, about string),
	) {
		for t, err := range c.ListTypes(ctx, drover.TypeListOptions{Kind: kind, Prefix: prefix, Limit: completeMost}) {
			if err != nil {
				return
			}
			yield(t.Name, about(t.Description))
		}
	}
}

// workflowTypes are those that are registered, and those of runs.
func workflowTypes(
	ctx context.Context, c *drover.Client, prefix string, yield func(name, about string),
) {
	for t, err := range c.ListTypes(ctx, drover.TypeListOptions{
		Kind: schemas.WorkflowKind, Status: schemas.TypeRegistered, Prefix: prefix,
		Limit: completeMost,
	}) {
		if err != nil {
			break
		}
		yield(t.Name, about(t.Description))
	}
	for e, err := range c.List(ctx, drover.ListOptions{Limit: completeMost}) {
		if err != nil {
			return
		}
		yield(e.Type, "")
	}
}

func taskLists(ctx context.Context, c *drover.Client, _ string, yield func(name, about string)) {
	lists, err := c.TaskLists(ctx)
	if err != nil {
		return
	}
	for _, l := range lists {
		yield(l.List, "")
	}
}

func namespaceNames(
	ctx context.Context, c *drover.Client, _ string, yield func(name, about string),
) {
	for n, err := range c.ListNamespaces(ctx) {
		if err != nil {
			return
		}
		yield(n.Name, about(n.Description))
	}
}

func scheduleIDs(
	ctx context.Context, c *drover.Client, prefix string, yield func(name, about string),
) {
	for l, err := range c.Schedules(ctx, drover.SchedulesOptions{Prefix: prefix, Limit: completeMost}) {
		if err != nil {
			return
		}
		yield(l.Schedule.ID, about(ScheduleTimes(&l.Schedule)))
	}
}

func alwaysIDs(
	ctx context.Context, c *drover.Client, prefix string, yield func(name, about string),
) {
	for r, err := range c.AlwaysOn(ctx, drover.AlwaysOnOptions{Prefix: prefix, Limit: completeMost}) {
		if err != nil {
			return
		}
		yield(r.AlwaysOn.Start.WorkflowID, about(r.AlwaysOn.Start.Type))
	}
}

func nodeWords(ctx context.Context, c *drover.Client, _ string, yield func(name, about string)) {
	_, list, err := OpenNodes(ctx, c)
	if err != nil {
		return
	}
	for _, i := range list {
		yield(i.Node, string(i.Status))
	}
}

// about makes a description fit one line of a shell.
func about(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}
