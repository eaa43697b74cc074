package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// GroupCommand is a command that has only commands below it.
func GroupCommand(a *App, use, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.Running = false
			if len(args) == 0 {
				return errors.New("a command is missing")
			}
			return NoCommand(cmd, args[0])
		},
	}
}

// NoCommand says that there is no command of a word below cmd, and which are near, or which there
// are. Cobra's own word for it comes from the root alone.
func NoCommand(cmd *cobra.Command, word string) error {
	path := append(strings.Fields(cmd.CommandPath())[1:], word)
	msg := fmt.Sprintf("there is no command %q", strings.Join(path, " "))
	cmd.SuggestionsMinimumDistance = 2 // of letters; each command has its own, and by default none
	if like := cmd.SuggestionsFor(word); len(like) > 0 {
		return errors.New(msg + "; did you mean " + strings.Join(like, ", ") + "?")
	}
	if !cmd.HasParent() { // help has them all
		return errors.New(msg)
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	last := names[len(names)-1]
	if len(names) > 1 {
		last = strings.Join(names[:len(names)-1], ", ") + " or " + last
	}
	return errors.New(msg + ": use " + last)
}
