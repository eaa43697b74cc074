package flows

import (
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/droverhq/drover/decider/workflow"
)

func asked(ctx workflow.Context, cards map[string]int, saga *workflow.Saga) {
	for card := range cards { // want `a range over a map that asks for something in workflow code: range over slices.Sorted\(maps.Keys\(m\)\)`
		_, _ = workflow.Call(ctx, charge, card)
	}
	for card := range maps.Keys(cards) { // want `a range over a map that asks`
		chargeOne(ctx, card)
	}
	for range cards { // want `a range over a map that asks`
		saga.Add(nil)
	}
	for _, card := range slices.Sorted(maps.Keys(cards)) {
		_, _ = workflow.Call(ctx, charge, card)
	}
	sum := 0
	for _, n := range cards {
		if workflow.Now(ctx).Hour() < 12 && ctx.Err() == nil {
			sum += n
		}
	}
	var futures []*workflow.Future[int]
	for card := range cards { // want `a range over a map that asks`
		futures = append(futures, workflow.Start(ctx, charge, card))
	}
}

func chargeOne(ctx workflow.Context, card string) { _, _ = workflow.Call(ctx, charge, card) }

func appended(ctx workflow.Context, cards map[string][]string) []string {
	var all, sorted, byLen []string
	for card := range cards {
		all = append(all, card)       // want `an append to all in the order of a map in workflow code: use slices.Sorted`
		sorted = append(sorted, card) // sorted below
		byLen = append(byLen, card)
	}
	slices.Sort(sorted)
	sort.Slice(byLen, func(i, j int) bool { return len(byLen[i]) < len(byLen[j]) })
	copied := map[string][]string{}
	for card, names := range cards {
		var own []string
		for _, n := range names {
			own = append(own, strings.ToUpper(n)) // begins anew each time
		}
		copied[card] = append(copied[card], own...)
	}
	keys := slices.Collect(maps.Keys(cards)) // want `what a map has, in an order that differs each time, in workflow code: use slices.Sorted`
	later := slices.Collect(maps.Keys(cards))
	slices.Sort(later)
	copied = maps.Collect(maps.All(cards))
	_ = maps.Clone(copied)
	return append(keys, all...)
}
