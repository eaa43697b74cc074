package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/droverhq/drover/broker/natsconn"
)

// listConsumers is how many consumers a task list has: one for each priority.
const listConsumers = 3

// limits of an account, or of one of its tiers; 0 or less means none.
type limits struct {
	Tier          string // "" without tiers
	Store, Memory uint64 // bytes in use, of all copies
	// bytes of files that the limits of streams lay claim to, of one copy
	Reserved            uint64
	Streams             int
	MaxStore, MaxMemory int64
	MaxStreams          int
}

// copies is how many of each byte in use the limit counts once: that of a tier, such as R3, is for
// one copy.
func (l *limits) copies() float64 {
	n, err := strconv.Atoi(strings.TrimPrefix(l.Tier, "R"))
	if err != nil || n < 1 {
		return 1
	}
	return float64(n)
}

func (e *examination) account(ctx context.Context) bool {
	ctx, stop := e.conn.UntilRefused(ctx, "$JS.API.")
	defer stop()
	info, err := e.conn.JetStream().AccountInfo(ctx)
	if err != nil {
		e.add(unseen(checkAccount, cause(ctx, err)))
		return true
	}
	e.consumers = info.Limits.MaxConsumers
	all := []limits{{
		Store: info.Store, Memory: info.Memory, Reserved: info.ReservedStore, Streams: info.Streams,
		MaxStore: info.Limits.MaxStore, MaxMemory: info.Limits.MaxMemory,
		MaxStreams: info.Limits.MaxStreams,
	}}
	for name, t := range info.Tiers {
		// one for each number of replicas; the account itself has no limits then
		if most := t.Limits.MaxConsumers; most > 0 && (e.consumers <= 0 || most < e.consumers) {
			e.consumers = most
		}
		all = append(all, limits{
			Tier: name, Store: t.Store, Memory: t.Memory, Reserved: t.ReservedStore,
			Streams: t.Streams, MaxStore: t.Limits.MaxStore, MaxMemory: t.Limits.MaxMemory,
			MaxStreams: t.Limits.MaxStreams,
		})
	}
	slices.SortFunc(all, func(a, b limits) int { return strings.Compare(a.Tier, b.Tier) })
	e.add(judgeAccount(all...))
	return true
}

// judgeAccount looks at the account as a whole, which comes first, and at its tiers.
func judgeAccount(all ...limits) Finding {
	f, said := Finding{Status: OK, Check: checkAccount}, []string{}
	for _, l := range all {
		status, text := l.judge()
		if text != "" {
			said = append(said, text)
		}
		if status == Bad || status == Warn && f.Status == OK {
			f.Status = status
		}
	}
	f.Found = "uses " + strings.Join(said, "; ")
	if len(said) == 0 {
		f.Found = fmt.Sprintf("uses %s in %d streams and has no limits",
			size(int64(all[0].Store+all[0].Memory)), all[0].Streams)
	}
	if f.Status != OK {
		f.Change = "raise the limits of the account, or remove what is not needed; when they " +
			"are reached nothing is accepted any more"
	}
	return f
}

// judgeConsumers looks at how many consumers the account allows a stream, 0 or less for any number.
// The signals have a reader for each partition, and for a while that of an owner that has died as
// well.
func judgeConsumers(most, partitions int) []Finding {
	f := Finding{Status: OK, Check: checkAccount, Change: natsconn.ConsumersHint}
	switch {
	case most <= 0:
		return nil
	case most < max(partitions, listConsumers):
		f.Status = Bad
	case most < 2*partitions:
		f.Status = Warn
	default:
		return nil
	}
	f.Found = fmt.Sprintf(
		"allows each stream %d consumers, too few for task lists and the signals of %d partitions",
		most, partitions)
	return []Finding{f}
}

// judge tells how much of each limit is used, "" if there is none.
func (l *limits) judge() (Status, string) {
	status, said := OK, []string{}
	for _, of := range []struct {
		name      string
		used, max float64
		text      string
	}{
		{"file storage", float64(l.Store) / l.copies(), float64(l.MaxStore), size(int64(l.Store))},
		{"memory", float64(l.Memory) / l.copies(), float64(l.MaxMemory), size(int64(l.Memory))},
		{"streams", float64(l.Streams), float64(l.MaxStreams), fmt.Sprint(l.Streams)},
	} {
		if of.max <= 0 {
			continue
		}
		share := of.used / of.max
		said = append(said, fmt.Sprintf("%.0f%% of its %s (%s)", 100*share, of.name, of.text))
		switch {
		case share >= limitBad:
			status = Bad
		case share >= limitWarn && status == OK:
			status = Warn
		}
	}
	if l.Reserved > 0 && l.MaxStore > 0 {
		// nothing is wrong with that, but for whoever needs another list
		said = append(said,
			fmt.Sprintf("%.0f%% of its file storage is reserved by the limits of streams",
				100*float64(l.Reserved)/float64(l.MaxStore)))
	}
	if len(said) > 0 && l.Tier != "" {
		said[len(said)-1] += " in " + l.Tier
	}
	return status, strings.Join(said, ", ")
}
