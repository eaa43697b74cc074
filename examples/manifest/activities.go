package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/droverhq/drover/activity"
)

// list finds the names and puts them into the scratch folder, in byte order.
func list(ctx context.Context, r request) (listing, error) {
	find := walk
	if r.Given {
		find = given
	}
	names, err := find(ctx, r)
	if err != nil {
		return listing{}, err
	}
	slices.Sort(names)
	names = slices.Compact(names)
	file, err := writeNames(r.Scratch, names)
	return listing{Names: file, Files: len(names)}, err
}

// walk finds the regular files below the folder. Symbolic links are neither followed nor listed.
func walk(ctx context.Context, r request) ([]string, error) {
	var names []string
	err := filepath.WalkDir(r.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || path == r.Out {
			return err
		}
		name, err := filepath.Rel(r.Dir, path)
		if err != nil {
			return err
		}
		names = append(names, name)
		return progress(ctx, len(names))
	})
	return names, err
}

// given reads the names that somebody else has chosen.
func given(ctx context.Context, r request) ([]string, error) {
	all, err := os.ReadFile(filepath.Join(r.Scratch, givenFile))
	if err != nil {
		return nil, err
	}
	var names []string
	for raw := range bytes.SplitSeq(all, []byte{0}) {
		name := string(raw)
		if name == "" || filepath.Join(r.Dir, name) == r.Out {
			continue
		}
		if !filepath.IsLocal(name) {
			return nil, fmt.Errorf("the name %q leads out of the folder: give names relative to it", name)
		}
		names = append(names, name)
		if err := progress(ctx, len(names)); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// progress beats once in a while, and ends what is no longer wanted.
func progress(ctx context.Context, n int) error {
	if n%10_000 != 0 {
		return nil
	}
	return activity.Heartbeat(ctx, n)
}

// hash computes the digest of one file and puts it into the scratch folder.
func hash(ctx context.Context, in hashing) (hashed, error) {
	name, err := nameAt(in.Scratch, in.Names, in.N)
	if err != nil {
		return hashed{}, err
	}
	digest, size, err := digestOf(ctx, in.Dir, name)
	if err != nil {
		return hashed{}, err
	}
	return hashed{Bytes: size}, storeSum(in.Scratch, in.N, digest)
}

// beatEvery is how many bytes are read between two heartbeats. Most files are smaller and send none.
const beatEvery = 64 << 20

// digestOf reads a file inside dir; a symbolic link that leads out of it is refused.
func digestOf(ctx context.Context, dir, name string) (digest []byte, size int64, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, 0, err
	}
	defer root.Close()
	// Looked at before it is opened: opening a pipe would wait for its other end.
	switch info, err := root.Stat(name); {
	case err != nil:
		return nil, 0, err
	case !info.Mode().IsRegular():
		return nil, 0, fmt.Errorf("%q is no regular file", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	h := sha256.New()
	for {
		n, err := io.CopyN(h, f, beatEvery)
		size += n
		if errors.Is(err, io.EOF) {
			return h.Sum(nil), size, nil
		}
		if err == nil {
			err = activity.Heartbeat(ctx, size)
		}
		if err != nil {
			return nil, 0, err
		}
	}
}

// write makes the manifest. It appears whole or not at all.
func write(ctx context.Context, in writing) (struct{}, error) {
	f, err := os.CreateTemp(filepath.Dir(in.Out), ".manifest-*")
	if err != nil {
		return struct{}{}, err
	}
	w := bufio.NewWriter(f)
	lines := 0
	err = eachSum(in.Scratch, in.Names, func(name string, digest []byte) error {
		if _, err := w.WriteString(sumLine(digest, name)); err != nil {
			return err
		}
		lines++
		return progress(ctx, lines)
	})
	err = errors.Join(err, w.Flush(), f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), in.Out)
	}
	if err != nil {
		return struct{}{}, errors.Join(err, os.Remove(f.Name()))
	}
	return struct{}{}, syncDir(filepath.Dir(in.Out))
}
