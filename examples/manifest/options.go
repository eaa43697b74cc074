package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"
)

// errHelp says that the usage was asked for, and printed.
var errHelp = flag.ErrHelp

// options are the flags.
type options struct {
	url       string
	id        string
	dir, out  string // absolute
	width     int
	filesFrom string // "" = walk the folder, "-" = standard input
	progress  bool
}

func parse(args []string, stderr io.Writer) (*options, error) {
	var o options
	var dir, out string
	f := flag.NewFlagSet("manifest", flag.ContinueOnError)
	f.SetOutput(io.Discard) // who calls prints the error
	f.StringVar(&dir, "dir", ".", "the folder whose files are listed")
	f.StringVar(&out, "out", "", "the manifest to write (required)")
	f.IntVar(&o.width, "width", 8, "how many files to hash at a time")
	f.StringVar(&o.filesFrom, "files-from", "", "take the names from this file, each ended by a NUL byte as \"git ls-files -z\" writes them; - is standard input")
	f.StringVar(&o.id, "id", "", "the workflow id; the same one again goes on with an open run (default a new one)")
	f.StringVar(&o.url, "nats", "", "address of NATS (default $NATS_URL, else nats://127.0.0.1:4222)")
	f.BoolVar(&o.progress, "progress", isTerminal(stderr), "show progress on standard error (default: if that is a terminal)")
	switch err := f.Parse(args); {
	case errors.Is(err, errHelp):
		f.SetOutput(stderr)
		f.Usage()
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w; see -help", err)
	case f.NArg() > 0:
		return nil, fmt.Errorf("argument %q is too much", f.Arg(0))
	case out == "":
		return nil, errors.New("-out is missing: name the manifest to write")
	case o.width < 1 || o.width > maxWidth:
		return nil, fmt.Errorf("-width is %d: use 1 to %d", o.width, maxWidth)
	}
	var err error
	if o.dir, err = realPath("-dir", dir); err != nil {
		return nil, err
	}
	if info, err := os.Stat(o.dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("-dir %q is no folder", dir)
	}
	folder, err := realPath("-out", filepath.Dir(out))
	if err != nil {
		return nil, err
	}
	o.out = filepath.Join(folder, filepath.Base(out))
	if !utf8.ValidString(o.out) {
		return nil, fmt.Errorf("-out %q is not UTF-8: choose another name", out)
	}
	return &o, nil
}

// realPath makes a path that is the same for every process and however it was written. It travels in JSON, so it must be
// text.
func realPath(flag, path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	if !utf8.ValidString(abs) {
		return "", fmt.Errorf("%s %q is not UTF-8: choose a folder whose path is", flag, path)
	}
	return abs, nil
}

// request makes the scratch folder and puts the given names into it.
func (o *options) request(stdin io.Reader) (*request, error) {
	scratch, err := os.MkdirTemp("", "drover-manifest-")
	if err != nil {
		return nil, err
	}
	r := &request{Dir: o.dir, Out: o.out, Scratch: scratch, Given: o.filesFrom != "", Width: o.width}
	if !r.Given {
		return r, nil
	}
	if err := keepNames(o.filesFrom, stdin, filepath.Join(scratch, givenFile)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(scratch))
	}
	return r, nil
}

func keepNames(from string, stdin io.Reader, to string) error {
	if from != "-" {
		f, err := os.Open(from)
		if err != nil {
			return fmt.Errorf("-files-from: %w", err)
		}
		defer f.Close()
		stdin = f
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, stdin)
	return errors.Join(err, f.Sync(), f.Close())
}

// isTerminal tells whether a person reads along.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
