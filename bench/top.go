package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// byPackage prints how much CPU each package has used in a profile, itself and not what it called.
func byPackage(ctx context.Context, o options) error {
	out, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-unit=ms", "-nodecount=1000000", "-nodefraction=0", o.top).Output()
	if err != nil {
		return fmt.Errorf("go tool pprof %s: %w", o.top, err)
	}
	packages, total := flatByPackage(out)
	if total == 0 {
		return fmt.Errorf("%s has no samples: is it a CPU profile?", o.top)
	}
	fmt.Printf("%10s  %6s  %s\n", "ms", "share", "package")
	for _, p := range byValue(packages) {
		fmt.Printf("%10.0f  %5.1f%%  %s\n", packages[p], 100*packages[p]/total, p)
	}
	return nil
}

// flatByPackage adds up the first column of what pprof -top prints.
func flatByPackage(text []byte) (packages map[string]float64, total float64) {
	packages = map[string]float64{}
	for in := bufio.NewScanner(bytes.NewReader(text)); in.Scan(); {
		// flat, flat%, sum%, cum, cum%, function
		fields := strings.Fields(in.Text())
		if len(fields) < 6 {
			continue
		}
		ms, err := strconv.ParseFloat(strings.TrimSuffix(fields[0], "ms"), 64)
		if err != nil {
			continue
		}
		packages[packageOf(fields[5])] += ms
		total += ms
	}
	return packages, total
}

// packageOf is the import path in the name of a function: github.com/a/b.(*T).M is of github.com/a/b.
func packageOf(function string) string {
	function, _, _ = strings.Cut(function, "[") // of type parameters, which have paths too
	slash := strings.LastIndexByte(function, '/')
	name, _, found := strings.Cut(function[slash+1:], ".")
	if !found {
		return "(assembly and C)"
	}
	return function[:slash+1] + name
}
