package main

import (
	"context"
	"io"
	"os"

	"github.com/droverhq/drover/cmd/drover/cli"
)

func main() { os.Exit(execute(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// execute is a command line of drover. It returns the exit code.
func execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Run(ctx, args, stdin, stdout, stderr, commandGroups)
}
