package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// machine is what a sitting says about where it took place.
type machine struct {
	Time     time.Time         `json:"time"`
	CPU      string            `json:"cpu"`
	Cores    int               `json:"cores"`
	MemoryMB int64             `json:"memory_mb"`
	Kernel   string            `json:"kernel"`
	Versions map[string]string `json:"versions"`
}

// look describes this machine and the drover binary.
func look(ctx context.Context, binary string) *machine {
	m := &machine{Time: time.Now().UTC(), Cores: runtime.NumCPU(), Versions: map[string]string{"go": runtime.Version()}}
	m.CPU = after("/proc/cpuinfo", "model name", ":")
	if kb, err := strconv.ParseInt(strings.TrimSuffix(after("/proc/meminfo", "MemTotal", ":"), " kB"), 10, 64); err == nil {
		m.MemoryMB = kb >> 10
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(text))
	}
	m.Versions["drover"] = said(ctx, "git", "-C", "..", "describe", "--always", "--dirty")
	if info, err := buildinfo.ReadFile(binary); err == nil {
		for _, d := range info.Deps {
			if strings.HasPrefix(d.Path, "github.com/nats-io/nats") {
				m.Versions[d.Path[strings.LastIndex(d.Path, "nats-io/")+len("nats-io/"):]] = d.Version
			}
		}
	}
	return m
}

func (m *machine) String() string {
	var text strings.Builder
	text.WriteString(fmt.Sprintf("%s, %d cores, %d MB, Linux %s, %s", m.CPU, m.Cores, m.MemoryMB, m.Kernel, m.Time.Format(time.DateOnly)))
	for _, name := range slices.Sorted(maps.Keys(m.Versions)) {
		text.WriteString(fmt.Sprintf("\n%s: %s", name, m.Versions[name]))
	}
	return text.String()
}

// after is what stands after a mark in the first line of a file that begins with a word.
func after(path, word, mark string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	for l := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(l, mark); found && strings.TrimSpace(name) == word {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// said is the first line that a command prints.
func said(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return "unknown: " + err.Error()
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return first
}

// busy is for how many seconds the cores of this machine have worked since its start, whoever for.
func busy() float64 {
	fields := strings.Fields(after("/proc/stat", "cpu", " "))
	ticks := 0.0
	for i, f := range fields {
		if i == 3 || i == 4 || i > 6 { // idle and waiting for the disk; stolen, and guests, which count as user already
			continue
		}
		n, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return ticks / clockTicks
}
