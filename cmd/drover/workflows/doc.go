// Package workflows has the commands about workflows and their runs: those that act on them, such
// as start and signal, and those that show them, such as list, history and why. Operations and dead
// letters are shown here, too.
package workflows
