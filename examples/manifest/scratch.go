package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The scratch folder holds what would outgrow messages, and what JSON cannot carry:
//
//	given     the names that somebody else has chosen, each ended by a NUL byte
//	names-*   a listing: the number of names, where each begins and the last ends, and the names one after another
//	sums      a record for each file: one byte that is 1, and the 32 bytes of its digest
//
// An activity may run twice, even at the same time, while its outcome counts once. So each run of the list activity has
// a file of its own, which its outcome names; and the records of sums have their places, so that a second write changes
// nothing.
const (
	givenFile  = "given"
	namesFile  = "names-*"
	sumsFile   = "sums"
	wordSize   = 8
	digestSize = 32
	recordSize = 1 + digestSize
)

// writeNames stores a listing under a name of its own, which it returns, and makes room for the digests.
func writeNames(scratch string, names []string) (file string, err error) {
	f, err := os.CreateTemp(scratch, namesFile)
	if err != nil {
		return "", err
	}
	w := bufio.NewWriter(f)
	word := func(n int) {
		_, _ = w.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) // Flush returns the first error
	}
	word(len(names))
	end := 0
	word(end)
	for _, name := range names {
		end += len(name)
		word(end)
	}
	for _, name := range names {
		_, _ = w.WriteString(name)
	}
	if err := errors.Join(w.Flush(), f.Sync(), f.Close()); err != nil {
		return "", err
	}
	sums, err := os.OpenFile(filepath.Join(scratch, sumsFile), os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	return filepath.Base(f.Name()), errors.Join(sums.Close(), syncDir(scratch))
}

// syncDir makes names in a folder last. What an activity reports must be as durable as the history that says so.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// nameAt reads the n-th name of a listing, whose length does not matter.
func nameAt(scratch, file string, n int) (string, error) {
	f, err := os.Open(filepath.Join(scratch, file))
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, wordSize)
	if _, err := f.ReadAt(head, 0); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	count := int(binary.BigEndian.Uint64(head))
	if n < 0 || n >= count {
		return "", fmt.Errorf("%s holds %d names, there is no number %d", file, count, n)
	}
	bounds := make([]byte, 2*wordSize)
	if _, err := f.ReadAt(bounds, int64(1+n)*wordSize); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	from, to := binary.BigEndian.Uint64(bounds), binary.BigEndian.Uint64(bounds[wordSize:])
	name := make([]byte, to-from)
	if _, err := f.ReadAt(name, int64(2+count)*wordSize+int64(from)); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return string(name), nil
}

// storeSum keeps the digest of the n-th file.
func storeSum(scratch string, n int, digest []byte) error {
	f, err := os.OpenFile(filepath.Join(scratch, sumsFile), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(append([]byte{1}, digest...), int64(n)*recordSize)
	return errors.Join(err, f.Sync(), f.Close())
}

// eachSum yields every name of a listing with its digest, in order.
func eachSum(scratch, file string, yield func(name string, digest []byte) error) error {
	all, err := os.ReadFile(filepath.Join(scratch, file))
	if err != nil {
		return err
	}
	if len(all) < 2*wordSize {
		return fmt.Errorf("%s: %w", file, io.ErrUnexpectedEOF)
	}
	count := int(binary.BigEndian.Uint64(all))
	offsets, names := all[wordSize:(2+count)*wordSize], all[(2+count)*wordSize:]
	sums, err := os.ReadFile(filepath.Join(scratch, sumsFile))
	if err != nil {
		return err
	}
	for n := range count {
		from, to := binary.BigEndian.Uint64(offsets[n*wordSize:]), binary.BigEndian.Uint64(offsets[(n+1)*wordSize:])
		name := string(names[from:to])
		if len(sums) < (n+1)*recordSize || sums[n*recordSize] != 1 {
			return fmt.Errorf("%s holds no digest of %q", sumsFile, name)
		}
		if err := yield(name, sums[n*recordSize+1:(n+1)*recordSize]); err != nil {
			return err
		}
	}
	return nil
}
